"""What a door's records hold: their tables, runs and replies as rows, and the states of a run."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

OPENING, OPEN, SETTLING, ENDED = "opening", "open", "settling", "ended"
"""Of a run: begun to be opened; reserved, and asked; over, and its ledger to be told; settled for
good."""
TABLES = """
CREATE TABLE IF NOT EXISTS version (number INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS tokens (id TEXT PRIMARY KEY, hash BLOB NOT NULL, role TEXT NOT NULL, name TEXT NOT NULL,
    scope TEXT NOT NULL, created REAL NOT NULL, expires REAL, revoked REAL);
CREATE TABLE IF NOT EXISTS runs (id TEXT PRIMARY KEY, token TEXT NOT NULL, key TEXT NOT NULL, digest BLOB NOT NULL,
    dataset TEXT NOT NULL, request BLOB NOT NULL, state TEXT NOT NULL, how TEXT NOT NULL, epsilon REAL NOT NULL,
    opened REAL NOT NULL, touched REAL NOT NULL, header TEXT, secure INTEGER NOT NULL DEFAULT 1,
    sitting INTEGER NOT NULL DEFAULT 0, statement TEXT, UNIQUE (token, key));
CREATE TABLE IF NOT EXISTS entries (run TEXT NOT NULL, place INTEGER NOT NULL, number INTEGER NOT NULL, event TEXT NOT NULL,
    questions TEXT NOT NULL, batch TEXT NOT NULL, purpose TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (run, place));
CREATE TABLE IF NOT EXISTS notes (run TEXT NOT NULL, kind TEXT NOT NULL, words TEXT NOT NULL, PRIMARY KEY (run, kind, words));
CREATE TABLE IF NOT EXISTS replies (run TEXT NOT NULL, place INTEGER NOT NULL, key TEXT NOT NULL, digest BLOB NOT NULL,
    act TEXT NOT NULL, request BLOB, body BLOB NOT NULL, at REAL NOT NULL, PRIMARY KEY (run, place), UNIQUE (run, key));
CREATE TABLE IF NOT EXISTS divisions (id TEXT PRIMARY KEY, token TEXT NOT NULL, key TEXT NOT NULL, digest BLOB NOT NULL,
    dataset TEXT NOT NULL, share REAL NOT NULL, coins TEXT NOT NULL, root BLOB NOT NULL, secure INTEGER NOT NULL,
    at REAL NOT NULL, UNIQUE (token, key));
CREATE TABLE IF NOT EXISTS boots (id TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS secret (key BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS bound (id TEXT PRIMARY KEY, rows BLOB NOT NULL);
"""
NEXT = "(SELECT COALESCE(MAX(place) + 1, 0) FROM {} WHERE run = ?)"


@dataclass(frozen=True)
class RunRecord:
    """One run, as it is written down. `how`: in words, how it ended."""

    id: str
    token: str
    key: str
    digest: bytes
    dataset: str
    request: bytes
    state: str
    how: str
    epsilon: float
    opened: float
    touched: float
    header: str | None
    secure: bool
    sitting: int
    statement: str | None


@dataclass(frozen=True)
class Reply:
    """What was answered to a request of this key. `request`: kept where it must be done again
    later."""

    key: str
    digest: bytes
    act: str
    request: bytes | None
    body: bytes


def run_of(row: sqlite3.Row) -> RunRecord:
    return RunRecord(**{**dict(row), "secure": bool(row["secure"])})


def reply_of(row: sqlite3.Row) -> Reply:
    return Reply(row["key"], row["digest"], row["act"], row["request"], row["body"])
