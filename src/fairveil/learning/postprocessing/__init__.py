"""Rules over a finished model's decisions or scores, found by a linear program over one private
count (Jagielski et al.)."""
