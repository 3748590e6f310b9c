"""The door of one holder: its records, tokens, data sets and runs, put together. The service knows
HTTP alone."""

from __future__ import annotations

import importlib.metadata
import os
import sqlite3
from dataclasses import dataclass
from typing import Any

from ...errors import FairveilError
from ...statement import signing
from ..wire.messages import unpacked
from .data_sets import DataSet
from .holder import Holder
from .records import Records
from .refusals import FORBIDDEN, UNKNOWN, Refusal
from .runs import Runs
from .tokens import Token, Tokens

PASSPHRASE_VARIABLE = "FAIRVEIL_KEY_PASSPHRASE"


@dataclass(eq=False, repr=False)
class Door:
    """Everything that a request may reach."""

    holder: Holder
    records: Records
    tokens: Tokens
    datasets: dict[str, DataSet]
    runs: Runs
    public_key: str | None
    fingerprint: str | None

    @staticmethod
    def opened(holder: Holder) -> Door:
        """Rows are read and checked, the ledger is found, and what an earlier server left half done
        is settled."""
        holder.require_certificate()
        records = Records(holder.folder)
        try:
            secret = records.key()
            datasets = {one.name: DataSet.opened(one, secret) for one in holder.datasets}
            key = None
            if holder.signing_key is not None:
                key = signing.private_key(holder.signing_key, os.environ.get(PASSPHRASE_VARIABLE))
            tokens = Tokens(records)
            runs = Runs(records, tokens, datasets, holder.limits, key)
            runs.recover()
        except BaseException:
            records.close()
            raise
        pem = None if key is None else signing.public_pem(key.public_key()).decode()
        named = None if key is None else signing.fingerprint(key.public_key())
        return Door(holder, records, tokens, datasets, runs, pem, named)

    def close(self) -> None:
        """Let go of all files. Runs stay open: their analysts go on when the door is open again."""
        self.records.close()
        for dataset in self.datasets.values():
            dataset.ledger.close()

    def about(self) -> dict[str, Any]:
        """What anybody may know."""
        return {
            "service": "fairveil",
            "version": _version(),
            "protocol": 1,
            "holder": self.holder.name,
            "public_key": self.public_key,
            "fingerprint": self.fingerprint,
        }

    def list(self, token: Token) -> dict[str, Any]:
        """The data sets that a token may see, with their public facts."""
        return {
            "datasets": [one.facts() for one in self.datasets.values() if token.may_see(one.name)]
        }

    def facts(self, token: Token, name: str) -> dict[str, Any]:
        """One data set, and what is left of its budget."""
        found = self._seen(token, name)
        return {**found.facts(), "balance": found.balance(), "scope": token.scope.words}

    def price(self, token: Token, name: str, body: bytes) -> dict[str, Any]:
        """What a plan would cost."""
        return self.runs.foretold(token, name, unpacked(body))

    def ledger(self, token: Token, name: str) -> str:
        """All lines of a ledger: for auditors and the holder."""
        if token.role not in ("auditor", "holder"):
            raise Refusal(*FORBIDDEN, of="role", got=token.role)
        return self._seen(token, name).ledger.export()

    def statements(self, token: Token, name: str) -> dict[str, Any]:
        """Every statement of a data set's runs."""
        if token.role not in ("auditor", "holder"):
            raise Refusal(*FORBIDDEN, of="role", got=token.role)
        dataset = self._seen(token, name)
        found = [run for run in self.records.runs() if run.dataset == dataset.name]
        return {
            "runs": [
                {"run": run.id, "state": run.state, "how": run.how, "statement": run.statement}
                for run in found
            ]
        }

    def healthy(self) -> bool:
        """Whether the records and the ledgers can be read, and the last write was written."""
        try:
            self.records.rows("SELECT 1")
            for dataset in self.datasets.values():
                _ = dataset.ledger.is_untouched
        except (FairveilError, OSError, sqlite3.Error):
            return False
        return self.records.can_write

    def _seen(self, token: Token, name: str) -> DataSet:
        found = self.datasets.get(name)
        if found is None or not token.may_see(name):
            raise Refusal(*UNKNOWN)
        return found


def _version() -> str:
    try:
        return importlib.metadata.version("fairveil")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
