"""Addresses of databases, and messages about them without their passwords."""

from __future__ import annotations

import re
from urllib.parse import unquote

IN_USER_PART = re.compile(r"(?P<before>\w*:?//[^:/?#]*:)(?P<secret>.*)(?P<after>@)")
IN_QUERY = re.compile(
    r"(?P<before>(?:password|passwd|pwd|token|secret|sslpassword)\s*=\s*)(?P<secret>[^&\s]+)",
    re.IGNORECASE,
)
HIDDEN = "***"


def secrets_of(url: str) -> tuple[str, ...]:
    """Every password in an address, as written and as decoded; at an @ that should have been %40,
    its parts too."""
    whole = [
        match["secret"] for pattern in (IN_USER_PART, IN_QUERY) for match in pattern.finditer(url)
    ]
    found = [part for secret in whole for part in (secret, *secret.split("@"))]
    return tuple(
        dict.fromkeys(form for secret in found for form in (secret, unquote(secret)) if form)
    )


def without_password(url: str) -> str:
    """An address that may be shown.

    >>> without_password("postgresql://me:p%40ss@host/db?sslpassword=x")
    'postgresql://me:***@host/db?sslpassword=***'
    """
    hidden = IN_USER_PART.sub(rf"\g<before>{HIDDEN}\g<after>", url)
    return IN_QUERY.sub(rf"\g<before>{HIDDEN}", hidden)


def scrubbed(message: str, url: str) -> str:
    """A driver's message with the passwords of the address struck out, wherever they stand."""
    for secret in sorted(secrets_of(url), key=len, reverse=True):
        message = message.replace(secret, HIDDEN)
    return without_password(message)
