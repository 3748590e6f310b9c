"""How parts of estimators are written as plain values and read back."""
