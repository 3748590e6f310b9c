"""The console script, and `python -m fairveil`: `fairveil verify` of a privacy statement loads
`fairveil.statement` and nothing else; every other command, the whole command line."""

from __future__ import annotations

import sys


def main() -> None:
    """Answer the words of the shell."""
    if sys.argv[1:2] == ["verify"]:
        from .statement.command import verify

        status = verify(sys.argv[2:])
        if status is not None:
            raise SystemExit(status)
    from .cli import main as command_line

    command_line()


if __name__ == "__main__":
    main()
