"""Ring 7: the command line. A command is declared in a line of words and imports what it needs when
it runs, so that `--help` is instant and a wrong option is refused before anything heavy is loaded."""

from . import data, evidence, ledgers, modelling, sharing
from .frame import app, main

__all__ = ["app", "data", "evidence", "ledgers", "main", "modelling", "sharing"]
