"""The analyst's side: data of a holder in place of a table, and a curator that is asked through the
door."""
