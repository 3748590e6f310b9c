"""What a fit reports of itself: baselines, constraints, gaps, scores."""
