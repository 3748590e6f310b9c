"""The holder's side: what is open to analysts, who may what, runs and their records, and the
service itself."""
