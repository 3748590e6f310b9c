"""Private descent-ascent on a min-max problem of the user's."""
