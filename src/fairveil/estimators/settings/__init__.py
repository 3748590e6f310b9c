"""Settings that estimators take as frozen values: of solvers, of limits, of checkpoints, and of
rows set aside."""
