"""Divisions of a data set in two parts, for fits that are then scored or certified on people whom
they have not seen.

The holder throws the coins: each row is set aside by one of its own. The root of the coins is kept
in the records, so a run that is taken up again reads the part that it read before. No row leaves,
and no count of rows that is not public: an analyst has a name of the division. The ledger charges a
run on either part as one on all rows (theory.md#set-aside needs less).

Guarantees (tests/serving/test_serving_divisions.py):
1. The two parts of one division have no row in common, in all runs and after the server was killed:
   coins are thrown by place, so a division is bound to its rows and their order, and refused where
   these have changed (tests/serving/test_serving_rows.py).
2. A division is its token's, and of one data set: others are told what they are told of one that is
   not there.
3. A repeated request with the same key names the same division.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._json import Node
from ...core.noise import NoiseSource
from ...errors import InputError
from ...estimators.fitting.row_parts import COINS, aside_of
from ..wire.messages import Message
from .attaching import digest_of
from .records import Records
from .refusals import FORBIDDEN, REUSED, TOO_MANY, UNKNOWN, Refusal
from .tokens import Token

ROOT = 32
MOST_DIVISIONS = 1000
"""Of one token at a time."""


@dataclass(frozen=True)
class DivisionPart:
    """One of the two parts of a division: 0 stays, 1 is set aside."""

    division: str
    number: int

    @staticmethod
    def of(node: Node) -> DivisionPart:
        """As a run names it."""
        node.only(("division", "number"))
        return DivisionPart(node["division"].text(), node["number"].whole(at_least=0, at_most=1))


class Divisions:
    """All divisions of a door."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def make(
        self,
        token: Token,
        key: str,
        body: bytes,
        message: Message,
        dataset: str,
        rows: bytes,
        *,
        seeded: bool,
    ) -> str:
        """A new division, or the one that this key made before. `rows`: their digest."""
        digest = digest_of(b"divide", body)
        known = self._records.rows(
            "SELECT id, digest FROM divisions WHERE token = ? AND key = ?", (token.id, key)
        )
        if known:
            if bytes(known[0]["digest"]) != digest:
                raise Refusal(*REUSED)
            self._records.require_rows(known[0]["id"], rows)
            return str(known[0]["id"])
        node = message.content.only(("share", "seed", "coins"))
        share, coins = node["share"].number(), node["coins"].one_of(COINS)
        if not 0.0 < share < 1.0:
            remedy = "Take a share such as 0.3."
            raise InputError.expected(
                "a number between 0 and 1", of="share", got=share, remedy=remedy
            )
        secure = node["seed"].is_null
        if not secure and not seeded:
            raise Refusal(
                *FORBIDDEN, of="random_state", got="a seed; this holder's coins are secret"
            )
        root = secrets.token_bytes(ROOT) if secure else root_of(node["seed"])
        count = self._records.rows(
            "SELECT COUNT(*) AS n FROM divisions WHERE token = ?", (token.id,)
        )[0]["n"]
        if count >= MOST_DIVISIONS:
            raise Refusal(*TOO_MANY)
        id = secrets.token_hex(16)
        values = (id, token.id, key, digest, dataset, share, coins, root, int(secure), time.time())
        with self._records.writing() as db:
            db.execute("INSERT INTO divisions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
            self._records.bind(db, id, rows)
        return id

    def require(self, token: str, part: DivisionPart, dataset: str, rows: bytes) -> None:
        """An error unless the division is this token's, of this data set and these rows."""
        found = self._found(part)
        if found is None or found["token"] != token or found["dataset"] != dataset:
            raise Refusal(*UNKNOWN)
        self._records.require_rows(part.division, rows)

    def rows_of(self, part: DivisionPart, rows: int) -> npt.NDArray[np.intp]:
        """The places of the rows of a part: guarantee 1."""
        found = self._found(part)
        if found is None:
            raise Refusal(*UNKNOWN)
        source = NoiseSource(bytes(found["root"]), secure=bool(found["secure"]))
        return np.flatnonzero(
            aside_of(source, rows, float(found["share"]), found["coins"]) == bool(part.number)
        )

    def words_of(self, part: DivisionPart) -> str:
        """Which rows are read, for a statement."""
        found = self._found(part)
        if found is None:
            raise Refusal(*UNKNOWN)
        share = float(found["share"]) if part.number else 1.0 - float(found["share"])
        coin = "a secret coin" if found["secure"] else "a seeded coin"
        return f"each row with probability {share:g}, by {coin} of its own"

    def forget(self, before: float) -> None:
        """Delete old divisions of which no run is open."""
        with self._records.writing() as db:
            db.execute(
                "DELETE FROM divisions WHERE at < ? AND NOT EXISTS (SELECT 1 FROM runs WHERE state "
                "!= 'ended')",
                (before,),
            )
            db.execute(
                "DELETE FROM bound WHERE id NOT IN (SELECT id FROM divisions) AND id NOT IN "
                "(SELECT id FROM runs WHERE state != 'ended')"
            )

    def _found(self, part: DivisionPart) -> Any:
        found = self._records.rows("SELECT * FROM divisions WHERE id = ?", (part.division,))
        return found[0] if found else None


def root_of(node: Node) -> bytes:
    """The root of a seeded source, as a test brings it."""
    try:
        root = bytes.fromhex(node.text())
    except ValueError:
        root = b""
    if len(root) != ROOT:
        node.refuse(f"{2 * ROOT} hexadecimal digits", "others")
    return root
