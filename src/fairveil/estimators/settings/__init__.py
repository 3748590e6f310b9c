"""Settings that estimators take as frozen values: of solvers, of limits, and of rows set
aside."""
