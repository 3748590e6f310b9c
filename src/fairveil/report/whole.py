"""A report as a value that shows itself in a notebook."""

from __future__ import annotations

import html

from .contents import ReportContents
from .page import render


class Report(ReportContents):
    """A page. Everything but the title may be left out; sections that have nothing are left out
    too.

    `subject`: one or two sentences on data and model. `verdict`: a paragraph in words (None:
    written from statements, gaps and tables). `all_models`: the statement of all models together
    whose numbers the page shows, where `statement` is that of one of them (or the same one): the
    page says first what looking at all of them costs. `statement_file`: where `statement` lies
    beside the page, for `fairveil verify`. `method`: how the model was found, by name. `guarantee`:
    what is certain of it (`report.certain`). `payments`: how its budget was shared among groups
    (`report.payments`). `ledger`: a budget that many releases share (`report.ledger`). `verify`:
    more commands.
    `not_covered`: sentences beside the statement's own; exact tables and held-out figures are added
    by themselves. `terms`: what an additive model says of each number.
    `baselines`: what the model is held against in training (`report.baselines`). `warnings`:
    sentences that stand above all else. `certificate`: what holds for people who were not in the
    table (`report.certificate`). `private_table`: rates by group from private counts
    (`report.private_table`). `audit`: what an audit of privacy found (`report.privacy_audit`).
    `created`: a date in words; without one none is printed, and the same report gives the same
    bytes.
    """

    def _repr_html_(self) -> str:
        """The page in a frame of its own, so that its style and the notebook's leave each other
        alone."""
        page = html.escape(render(self), quote=True)
        return (
            f'<iframe title="{html.escape(self.title)}" srcdoc="{page}" width="100%" '
            f'height="800"></iframe>'
        )
