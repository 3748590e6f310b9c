"""What may be asked: one class a question, which says what a row contributes, in which norm and how
large at most."""
