"""What searches choose by their parameters: oracles, lists of decisions, how numbers are taken."""
