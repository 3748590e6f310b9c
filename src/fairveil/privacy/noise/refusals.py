"""What a secure source of noise refuses: to be copied, and to be resumed by a forked child."""

from __future__ import annotations

from typing import NoReturn

from ...errors import PrivacyError


def refuse_fork() -> NoReturn:
    raise PrivacyError.expected(
        "the process that made the source",
        of="noise source",
        got="a forked child, which would repeat the parent's noise",
        remedy="Make a new NoiseSource.secure() in the child.",
    )


def refuse_copy(what: str) -> NoReturn:
    raise PrivacyError.expected(
        "one owner",
        of="noise source",
        got=f"a copy or pickle of {what}",
        remedy="A copied key gives the same noise twice: make a new source where it is needed.",
    )
