"""The tables of a ledger, for SQLite and PostgreSQL.

They are made inside one transaction that nobody else can enter. A database of another version is
refused, since this program would not know its rules. SQLite keeps the version in `user_version` and
says by `application_id` that the file is a ledger; PostgreSQL keeps it in a table.

Guarantees (tests/privacy/ledger/test_ledger_stores.py, test_ledger_sqlite.py,
test_ledger_postgres.py):
1. Tables are made whole, or none of them is.
2. The database itself refuses to change or delete a line, to number it otherwise than one after the
   last, and to charge less than nothing or more than the whole budget. Whoever may alter the tables
   may take these rules away: `check` then finds what was changed.
"""

from __future__ import annotations

from ....errors import LedgerError

APPLICATION = 0x46564C47  # "FVLG"
MOST_CHARGED = (1 << 60) + (1 << 20)
CREATE_LOCK = 0x46564C47_4C65_6467  # whoever makes tables of PostgreSQL holds this lock


# What is long stands last: SQLite then finds the other fields without reading it.
_TABLES = tuple(
    f"""
CREATE TABLE fairveil_ledger_entries (
  dataset TEXT NOT NULL, number {{whole}} NOT NULL, kind TEXT NOT NULL, spend TEXT NOT NULL, at TEXT NOT NULL,
  who TEXT NOT NULL, code TEXT NOT NULL, purpose TEXT NOT NULL, under TEXT NOT NULL, units {{whole}} NOT NULL,
  leak {{whole}} NOT NULL, spent {{whole}} NOT NULL CHECK (spent BETWEEN 0 AND {MOST_CHARGED}),
  leaked {{whole}} NOT NULL CHECK (leaked BETWEEN 0 AND {MOST_CHARGED}),
  previous TEXT NOT NULL, hash TEXT NOT NULL UNIQUE, content TEXT NOT NULL, PRIMARY KEY (dataset, number))
;
CREATE TABLE fairveil_ledger_heads (dataset TEXT NOT NULL PRIMARY KEY, number {{whole}} NOT NULL, hash TEXT NOT NULL)
""".split(";")
)

# With the number: else a database may rather read every line in order than sort the few of one
# spend.
_SPENDS = "CREATE INDEX fairveil_ledger_spends ON fairveil_ledger_entries (dataset, spend, number)"

# Inserting "or replace" deletes without a word to the triggers on deletion: hence those on
# insertion.
_SQLITE_RULES = (
    """CREATE TRIGGER fairveil_ledger_entries_insert BEFORE INSERT ON fairveil_ledger_entries
WHEN EXISTS (SELECT 1 FROM fairveil_ledger_entries WHERE hash = NEW.hash)
  OR NEW.number <> (SELECT coalesce(max(number), -1) + 1 FROM fairveil_ledger_entries WHERE dataset = NEW.dataset)
BEGIN SELECT RAISE(ABORT, 'lines are numbered one after another'); END""",
    """CREATE TRIGGER fairveil_ledger_entries_update BEFORE UPDATE ON fairveil_ledger_entries
BEGIN SELECT RAISE(ABORT, 'a line is never changed'); END""",
    """CREATE TRIGGER fairveil_ledger_entries_delete BEFORE DELETE ON fairveil_ledger_entries
BEGIN SELECT RAISE(ABORT, 'a line is never deleted'); END""",
    """CREATE TRIGGER fairveil_ledger_heads_insert BEFORE INSERT ON fairveil_ledger_heads
WHEN NEW.number <> 0 OR EXISTS (SELECT 1 FROM fairveil_ledger_heads WHERE dataset = NEW.dataset)
BEGIN SELECT RAISE(ABORT, 'a head begins at line 0'); END""",
    """CREATE TRIGGER fairveil_ledger_heads_update BEFORE UPDATE ON fairveil_ledger_heads
WHEN NEW.dataset <> OLD.dataset OR NEW.number <> OLD.number + 1
BEGIN SELECT RAISE(ABORT, 'a head goes on by one line'); END""",
    """CREATE TRIGGER fairveil_ledger_heads_delete BEFORE DELETE ON fairveil_ledger_heads
BEGIN SELECT RAISE(ABORT, 'a head is never deleted'); END""",
)

_POSTGRES_RULES = (
    """CREATE FUNCTION fairveil_ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'lines and heads are never changed or deleted' USING ERRCODE = 'integrity_constraint_violation';
END $$""",
    """CREATE FUNCTION fairveil_ledger_next() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.number > 0 AND NOT EXISTS
    (SELECT 1 FROM fairveil_ledger_entries WHERE dataset = NEW.dataset AND number = NEW.number - 1) THEN
    RAISE EXCEPTION 'lines are numbered one after another' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$""",
    """CREATE FUNCTION fairveil_ledger_head() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    IF NEW.number = 0 THEN RETURN NEW; END IF;
  ELSIF NEW.dataset = OLD.dataset AND NEW.number = OLD.number + 1 THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'a head begins at line 0 and goes on by one line' USING ERRCODE = 'integrity_constraint_violation';
END $$""",
    """CREATE TRIGGER fairveil_ledger_next BEFORE INSERT ON fairveil_ledger_entries
FOR EACH ROW EXECUTE FUNCTION fairveil_ledger_next()""",
    """CREATE TRIGGER fairveil_ledger_refuse BEFORE UPDATE OR DELETE ON fairveil_ledger_entries
FOR EACH ROW EXECUTE FUNCTION fairveil_ledger_refuse()""",
    """CREATE TRIGGER fairveil_ledger_keep BEFORE TRUNCATE ON fairveil_ledger_entries
FOR EACH STATEMENT EXECUTE FUNCTION fairveil_ledger_refuse()""",
    """CREATE TRIGGER fairveil_ledger_head BEFORE INSERT OR UPDATE ON fairveil_ledger_heads
FOR EACH ROW EXECUTE FUNCTION fairveil_ledger_head()""",
    """CREATE TRIGGER fairveil_ledger_refuse BEFORE DELETE ON fairveil_ledger_heads
FOR EACH ROW EXECUTE FUNCTION fairveil_ledger_refuse()""",
    """CREATE TRIGGER fairveil_ledger_keep BEFORE TRUNCATE ON fairveil_ledger_heads
FOR EACH STATEMENT EXECUTE FUNCTION fairveil_ledger_refuse()""",
)

VERSION = 2


def sqlite_statements() -> tuple[str, ...]:
    """What makes a ledger of an empty file, the mark of the version last."""
    tables = (table.format(whole="INTEGER") for table in _TABLES)
    marks = (f"PRAGMA application_id = {APPLICATION}", f"PRAGMA user_version = {VERSION}")
    return (*tables, _SPENDS, *_SQLITE_RULES, *marks)


def postgres_statements() -> tuple[str, ...]:
    """The same for tables of PostgreSQL."""
    tables = (table.format(whole="BIGINT") for table in _TABLES)
    marks = (
        "CREATE TABLE fairveil_ledger_version (version BIGINT NOT NULL)",
        f"INSERT INTO fairveil_ledger_version (version) VALUES ({VERSION})",
    )
    return (*tables, _SPENDS, *_POSTGRES_RULES, *marks)


def require_known(version: int, shown: str) -> None:
    """The version that this program makes, and no other."""
    if version != VERSION:
        raise LedgerError.expected(
            f"a ledger of version {VERSION}",
            of=shown,
            got=f"version {version}",
            remedy="Another Fairveil made it: pip install --upgrade fairveil.",
        )
