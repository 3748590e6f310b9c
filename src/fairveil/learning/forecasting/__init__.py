"""What a planned search will release, and with how much noise, foretold at supposed sizes of
groups."""
