"""Private descent against a player that holds the constraints (RaCO-DP) or a penalty (DP-FERMI),
and the final model."""
