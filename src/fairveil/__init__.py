"""Models that are fair to groups and private to people, with proof of both."""

__version__ = "0.1.0"
