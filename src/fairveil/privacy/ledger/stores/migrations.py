"""The tables of a ledger, version by version, for SQLite and PostgreSQL.

A database of an older version is brought to this one inside one transaction that nobody else can
enter; one of a newer version is refused, since an older program would not know its rules. SQLite
keeps the version in `user_version` and says by `application_id` that the file is a ledger;
PostgreSQL keeps it in a table.

Guarantees (tests/privacy/ledger/test_ledger_stores.py, test_ledger_sqlite.py,
test_ledger_postgres.py):
1. After a migration every line is as it was; a migration that fails has changed nothing.
2. The database itself refuses to change or delete a line, to number it otherwise than one after the
   last, and to charge less than nothing or more than the whole budget. Whoever may alter the tables
   may take these rules away: `check` then finds what was changed.
"""

from __future__ import annotations

from dataclasses import dataclass

from ....errors import LedgerError

APPLICATION = 0x46564C47  # "FVLG"
MOST_CHARGED = (1 << 60) + (1 << 20)
CREATE_LOCK = 0x46564C47_4C65_6467  # whoever makes or migrates tables of PostgreSQL holds this lock


@dataclass(frozen=True)
class Step:
    """From the version before to this one."""

    sqlite: tuple[str, ...]
    postgres: tuple[str, ...]


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

STEPS = (
    Step(
        sqlite=tuple(table.format(whole="INTEGER") for table in _TABLES),
        postgres=tuple(table.format(whole="BIGINT") for table in _TABLES),
    ),
    Step(sqlite=(_SPENDS, *_SQLITE_RULES), postgres=(_SPENDS, *_POSTGRES_RULES)),
)
LATEST = len(STEPS)


def sqlite_statements(version: int, to: int = LATEST) -> tuple[str, ...]:
    """What brings a file of this version (0: an empty one) to a later one, the mark of the version
    last."""
    steps = tuple(statement for step in STEPS[version:to] for statement in step.sqlite)
    return (*steps, f"PRAGMA application_id = {APPLICATION}", f"PRAGMA user_version = {to}")


def postgres_statements(version: int, to: int = LATEST) -> tuple[str, ...]:
    """The same for tables of PostgreSQL."""
    steps = tuple(statement for step in STEPS[version:to] for statement in step.postgres)
    if version:
        return (*steps, f"UPDATE fairveil_ledger_version SET version = {to}")
    mark = "CREATE TABLE fairveil_ledger_version (version BIGINT NOT NULL)"
    return (*steps, mark, f"INSERT INTO fairveil_ledger_version (version) VALUES ({to})")


def require_known(version: int, shown: str, *, read_only: bool) -> None:
    """A version that this program may use: not a newer one, and through a handle that only reads
    not an older one."""
    if version > LATEST:
        raise LedgerError.expected(
            f"a ledger of version {LATEST} or older",
            of=shown,
            got=f"version {version}",
            remedy="A newer Fairveil made it: pip install --upgrade fairveil.",
        )
    if version < LATEST and read_only:
        raise LedgerError.expected(
            f"a ledger of version {LATEST}",
            of=shown,
            got=f"version {version}",
            remedy=(
                "Open it once for writing, which brings it to this version, and then for "
                "reading only."
            ),
        )
