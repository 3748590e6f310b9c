"""Private choices among candidates: what is scored, how far one neighbour moves the scores apart,
and the draw."""
