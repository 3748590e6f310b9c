"""Who may what: tokens, kept as hashes, with a role, a scope and an end.

A token is 256 secret bits, shown once. On the disk is its SHA-256: no guess of so many bits needs
to be made slow.

Guarantees (tests/serving/test_serving_tokens.py):
1. The records hold nothing from which a token could be made.
2. A token that has expired, was revoked or was never issued is refused with the same words, at once
   and for good.
3. A token opens the data sets, protections and methods of its scope alone, and reserves no more
   than its epsilon a day: the sum of what its plans cost at the delta of the ledger.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import time
from dataclasses import asdict, dataclass
from typing import Any

from ... import _checks
from ...core.promise import PROTECTS, Promise
from ...errors import InputError
from .records import Records
from .refusals import FORBIDDEN, NOBODY, Refusal

ROLES = ("analyst", "auditor", "holder")
METHODS = ("models", "counts")
"""What a run may ask: all of the catalogue; or counts alone, with decisions of finished models."""
PREFIX = "fv"
_SHAPE = re.compile(r"fv_([0-9a-f]{12})_([0-9a-f]{64})")
DAY = 86_400.0


@dataclass(frozen=True)
class Scope:
    """What an analyst's token opens. None: everything that the holder serves."""

    datasets: tuple[str, ...] | None = None
    protects: tuple[str, ...] | None = None
    methods: tuple[str, ...] | None = None
    epsilon_a_day: float | None = None

    def __post_init__(self) -> None:
        for name, given, known in (
            ("protects", self.protects, PROTECTS),
            ("methods", self.methods, METHODS),
        ):
            for one in given or ():
                _checks.one_of(known, **{name: one})
        if self.epsilon_a_day is not None:
            _checks.positive(epsilon_a_day=self.epsilon_a_day)

    @staticmethod
    def of(text: str) -> Scope:
        """The inverse of `to_json`."""
        values: dict[str, Any] = json.loads(text)
        told: dict[str, Any] = {
            name: tuple(one) if isinstance(one, list) else one for name, one in values.items()
        }
        return Scope(**told)

    def to_json(self) -> str:
        """As it is written down."""
        return json.dumps(asdict(self))

    @property
    def words(self) -> str:
        """For a page or a terminal."""
        parts = [", ".join(self.datasets) if self.datasets is not None else "all data sets"]
        parts += [", ".join(self.protects)] if self.protects is not None else []
        parts += [" and ".join(self.methods) + " only"] if self.methods is not None else []
        parts += [f"epsilon {self.epsilon_a_day:g} a day"] if self.epsilon_a_day is not None else []
        return "; ".join(parts)


@dataclass(frozen=True)
class Token:
    """A token without its secret."""

    id: str
    role: str
    name: str
    scope: Scope
    created: float
    expires: float | None
    revoked: float | None

    def holds_at(self, now: float) -> bool:
        """Whether it opens anything."""
        return self.revoked is None and (self.expires is None or now < self.expires)

    def may_see(self, dataset: str) -> bool:
        """Whether it may know of this data set."""
        return self.scope.datasets is None or dataset in self.scope.datasets


class Tokens:
    """The tokens of one door."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def issue(
        self,
        name: str,
        role: str = "analyst",
        *,
        days: float | None = 90.0,
        scope: Scope | None = None,
    ) -> str:
        """A new token: the one time that its secret is seen."""
        _checks.one_of(ROLES, role=role)
        if not name.strip() or not name.isprintable() or len(name) > 100:
            remedy = "Say whose it is: fairveil serve token --name 'R. Weber, university'."
            raise InputError.expected(
                "a line of at most 100 letters", of="name", got=name, remedy=remedy
            )
        if days is not None:
            _checks.positive(days=days)
        id, secret, now = secrets.token_hex(6), secrets.token_hex(32), time.time()
        expires = None if days is None else now + days * DAY
        values = (id, _hash(secret), role, name, (scope or Scope()).to_json(), now, expires)
        with self._records.writing() as db:
            db.execute(
                "INSERT INTO tokens (id, hash, role, name, scope, created, expires) VALUES (?, ?, "
                "?, ?, ?, ?, ?)",
                values,
            )
        return f"{PREFIX}_{id}_{secret}"

    def of(self, given: str | None) -> Token:
        """The token that was shown; a refusal that says nothing where it opens nothing."""
        shape = _SHAPE.fullmatch(given or "")
        id, secret = shape.groups() if shape else ("", "")
        found = self._records.look("SELECT * FROM tokens WHERE id = ?", (id,))
        known = bytes(found[0]["hash"]) if found else bytes(32)
        right = hmac.compare_digest(known, _hash(secret))
        token = _token(found[0]) if found else None
        if token is None or not right or not token.holds_at(time.time()):
            raise Refusal(*NOBODY)
        return token

    def all(self) -> list[Token]:
        """Every token, the latest first."""
        return [
            _token(row) for row in self._records.rows("SELECT * FROM tokens ORDER BY created DESC")
        ]

    def names(self) -> dict[str, str]:
        """Whose each token is."""
        return {token.id: token.name for token in self.all()}

    def revoke(self, id: str) -> bool:
        """End a token now; whether there was one that held."""
        with self._records.writing() as db:
            changed = db.execute(
                "UPDATE tokens SET revoked = ? WHERE id = ? AND revoked IS NULL", (time.time(), id)
            )
            return changed.rowcount == 1

    def require_room(self, token: Token, promise: Promise, epsilon: float) -> None:
        """A run of this promise is within the scope, today's epsilon included: what its plan
        costs."""
        scope = token.scope
        if scope.protects is not None and promise.protects not in scope.protects:
            raise Refusal(*FORBIDDEN, of="protects", got=promise.protects)
        if scope.epsilon_a_day is None:
            return
        since = time.time() // DAY * DAY
        query = (
            "SELECT COALESCE(SUM(epsilon), 0) AS spent FROM runs WHERE token = ? AND opened >= ? "
            "AND how != 'never began'"
        )
        spent = float(self._records.rows(query, (token.id, since))[0]["spent"])
        if spent + epsilon > scope.epsilon_a_day * (1 + 1e-9):
            got = f"{epsilon:g}, after {spent:g} today"
            raise Refusal(
                *FORBIDDEN, of=f"epsilon a day, which is {scope.epsilon_a_day:g}", got=got
            )


def require_method(token: Token, method: str) -> None:
    """An act of this method is within the scope; whoever may ask all may count."""
    allowed = METHODS if token.scope.methods is None else token.scope.methods
    if method not in allowed and (method != "counts" or "models" not in allowed):
        raise Refusal(*FORBIDDEN, of="methods", got=method)


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def _token(row: object) -> Token:
    values = dict(row)  # type: ignore[call-overload]  # a row of the records
    return Token(
        values["id"],
        values["role"],
        values["name"],
        Scope.of(values["scope"]),
        values["created"],
        values["expires"],
        values["revoked"],
    )
