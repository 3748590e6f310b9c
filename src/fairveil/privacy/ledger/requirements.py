"""What a ledger insists on, beside room: its relation, production, its schema, its columns.

Guarantees (tests/privacy/ledger/test_ledger_handle.py, test_ledger_names.py):
1. A ledger in production takes no seeded noise, nothing that was read from the data, and no columns
   without names.
2. A ledger with a fingerprint takes rows read by that schema alone, where it is told by which they
   were read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ...core.promise import Promise
from ...errors import InputError, LedgerError
from ...facts import Schema
from .names import checked_columns
from .terms import Terms

MADE_UP = re.compile(r"sensitive_[0-9]+")  # the names of columns that came without


def require(
    terms: Terms,
    promise: Promise,
    *,
    secure: bool,
    read: Sequence[str],
    schema: Schema | bool | None,
) -> None:
    """Refuse what the terms forbid. `schema`: False where it is not known yet."""
    terms.require_relation(promise)
    of = f"ledger {terms.dataset!r}, in production,"
    if terms.production and not secure:
        remedy = "Leave random_state=None."
        raise LedgerError.expected("secure noise", of=of, got="seeded noise", remedy=remedy)
    if terms.production and read:
        remedy = "State it: in a Schema, or as an argument, without unsafe_data_dependent_bounds."
        raise LedgerError.expected(
            "nothing read from the data", of=of, got=", ".join(read), remedy=remedy
        )
    if terms.fingerprint is not None and schema is not False:
        got = schema.fingerprint if isinstance(schema, Schema) else None
        if got != terms.fingerprint:
            remedy = "Read the rows by the schema that the ledger was begun with."
            expected = f"a schema of fingerprint {terms.fingerprint[:16]}"
            of = f"ledger {terms.dataset!r}"
            raise LedgerError.expected(expected, of=of, got=got and got[:16], remedy=remedy)


def named_columns(terms: Terms, columns: Iterable[str] | None, asked: Promise) -> list[str] | None:
    """The columns that a release under this promise protects, where it says so and protects no
    more."""
    if columns is None or asked.protects != "sensitive_features":
        return None
    given = list(columns)
    if not given:
        remedy = "Pass sensitive_features=...: where none are named, all columns are published."
        of = f"ledger {terms.dataset!r}"
        raise LedgerError.expected(
            "a release that protects some columns", of=of, got="none", remedy=remedy
        )
    if terms.production and any(MADE_UP.fullmatch(str(name)) for name in given):
        remedy = (
            "Pass a Series, a mapping, names of columns of X, or a schema: columns are identified "
            "by their names."
        )
        of = f"ledger {terms.dataset!r}, in production,"
        raise LedgerError.expected("sensitive columns with names", of=of, got=given, remedy=remedy)
    return list(checked_columns(given))


def words_in(read_from_data: object) -> list[str]:
    """What was read from the data, each once."""
    if not isinstance(read_from_data, str) and isinstance(read_from_data, Iterable):
        names = list(read_from_data)
        if all(isinstance(name, str) for name in names):
            return sorted(set(names))
    remedy = "Pass read_from_data=['bounds of age'], for example, or nothing."
    got = read_from_data
    raise InputError.expected("a list of words", of="read_from_data", got=got, remedy=remedy)
