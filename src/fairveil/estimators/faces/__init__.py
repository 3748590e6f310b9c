"""What finished estimators share: prediction, coefficients, curves, modules."""
