"""Post-processors of decisions, scores and probabilities: `OddsPostProcessor`,
`ParityPostProcessor`, and their rows."""
