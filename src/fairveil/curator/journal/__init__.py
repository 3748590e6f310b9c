"""What was answered: the log, its lines on disk, the ledger that records it, and who may listen."""
