"""A privacy statement in the order of two published guides, for people who review by them.

Only what could be verified of the guides is used, and none of their own questions is repeated.

- NIST SP 800-226: the three levels of its pyramid, as NIST's news of 11 December 2023 describe
  them. Measures of the guarantee with epsilon are on top, factors that can undermine it, such as
  security, in the middle, and the collection of data below.
- The W3C Privacy Working Group's draft note "Considerations for Reviewing Differential Privacy
  Systems" (February 2026): the trade-offs that its abstract names: privacy, utility and the number
  of trusted parties.

Guarantees (tests/cards/test_checklists.py):
1. Every item of the statement stands on a checklist once, in its own words.
2. What the statement does not say is listed as not said.
"""

from __future__ import annotations

from collections.abc import Sequence

from .. import _checks
from ..privacy.statement.statement import PrivacyStatement
from ..privacy.statement.words import items

NOT_SAID = "The statement does not say"
Part = tuple[str, tuple[str, ...], tuple[str, ...]]
NIST: tuple[Part, ...] = (
    (
        "Top: measures of the guarantee",
        ("Definition and parameters", "Groups", "Neighbours", "What is protected", "Unit"),
        (),
    ),
    (
        "Middle: factors that can undermine the guarantee",
        (
            *(
                "Trust model",
                "Mechanisms",
                "Bounds",
                "Composition",
                "Sampling",
                "Tuning",
                "Earlier releases",
            ),
            *(
                "Noise source",
                "Floating point",
                "Versions",
                "Taken as public",
                "Not covered",
                "Notes",
                "Audit",
            ),
        ),
        ("security of the machines, and who has access to the rows",),
    ),
    ("Bottom: underlying factors", (), ("how the data were collected, and who else holds them",)),
)
W3C: tuple[Part, ...] = (
    (
        "Privacy",
        (
            *(
                "Definition and parameters",
                "Groups",
                "Neighbours",
                "What is protected",
                "Unit",
                "Mechanisms",
                "Bounds",
            ),
            *(
                "Composition",
                "Sampling",
                "Tuning",
                "Earlier releases",
                "Taken as public",
                "Not covered",
                "Notes",
                "Audit",
            ),
        ),
        (),
    ),
    ("Utility", (), ("error and gaps of the result; the report and the model card do",)),
    (
        "Trusted parties",
        ("Trust model", "Noise source", "Floating point", "Versions"),
        ("security of the machines, and who has access to the rows",),
    ),
)


def nist_checklist(statement: object) -> str:
    """The statement by the levels of the pyramid of NIST SP 800-226, as Markdown."""
    return _written(statement, "Privacy statement by the levels of NIST SP 800-226", NIST)


def w3c_checklist(statement: object) -> str:
    """The statement by the trade-offs of the W3C's draft note on reviewing differential privacy, as
    Markdown."""
    return _written(statement, "Privacy statement by the trade-offs of the W3C's draft note", W3C)


def _written(statement: object, title: str, parts: Sequence[Part]) -> str:
    remedy = "Pass clf.privacy_."
    statement = _checks.instance(
        PrivacyStatement, "statement", statement, remedy, "a privacy statement"
    )
    words = dict(items(statement))
    lines = [f"# {title}", ""]
    for heading, told, missing in parts:
        lines += [f"## {heading}", "", *(f"- {name}: {words[name]}" for name in told)]
        lines += [*(f"- **{NOT_SAID}**: {one}." for one in missing), ""]
    return "\n".join(lines).rstrip() + "\n"
