"""The trusted room: what must be right for privacy when a fit runs. It imports nothing else of
Fairveil, so it can be read, and checked, alone; docs/review.md says in which order."""
