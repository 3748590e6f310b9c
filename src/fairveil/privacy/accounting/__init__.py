"""What events cost: privacy losses, Renyi curves, the routes between them, calibration of noise,
filters."""
