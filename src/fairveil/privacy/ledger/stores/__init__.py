"""Where a ledger keeps its lines: SQLite and PostgreSQL behind one protocol."""
