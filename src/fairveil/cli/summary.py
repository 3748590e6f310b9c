"""What `fairveil fit` prints: the decision statement of its report, a line a fact, `label  words`.

    fairness    inconclusive: Required: the selection rates of any two groups of sex differ by ...
                inconclusive: Training rows: 4.8 points (95% interval over the noise 4.1 to 5.6 points).
    privacy     ...
    error       ...

Words and numbers are those of the page (`show.report`), so that the two never differ.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..show.parts import told
from ..show.report import NOTHING_REQUIRED, Report
from .printing import Fact

HELD_OUT = "--holdout 0.25 or --test TABLE measures it on rows that the fit has not seen"
REQUIRE = "nothing was required; --constraint demographic_parity:5% requires something"


def facts(report: Report) -> Iterator[Fact]:
    """What is known of a fit, in the order of weight."""
    label = ""
    for one in report.decision():
        label = one.label.lower().replace("not assessed", "unassessed") or label
        words = REQUIRE if one.words == NOTHING_REQUIRED else told(one).removesuffix(".")
        if label == "unassessed" and "held" in words:
            words = f"{words}; {HELD_OUT}"
        shown = label if one.label or label == "warning" else ""
        yield Fact(shown, words, (one.verdict,) if one.verdict else ())
