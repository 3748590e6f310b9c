"""Code of the caller beside rows: called so that nothing that it says or raises shows a row before
the run has ended."""
