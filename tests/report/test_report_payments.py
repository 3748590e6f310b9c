"""What each group spends, on a page: shares and epsilons of a fit's `tailoring_`, with what they
mean."""

from __future__ import annotations

import html
import math
from dataclasses import replace

import pytest

from fairveil.errors import InputError
from fairveil.estimators.tailored import TailoringReport
from fairveil.report import GroupPayment, Payments, Report, payments, render, to_dict

MEASURED = TailoringReport(
    groups=(("f", "a"), ("m", "a")),
    rule="standard-error",
    why="squared standard errors of the precursor's predictions",
    shares=(0.1, 0.9),
    errors=(0.25, 0.75),
    counts=(18991.3, 1002.0),
    epsilons=(0.41721, 0.99995),
    fixed=False,
)
NAN = math.nan


def test_each_group_has_its_share_and_its_epsilon() -> None:
    found = payments(MEASURED)
    assert found.rule == "standard-error (squared standard errors of the precursor's predictions)"
    assert found.lines == (
        GroupPayment("f / a", 0.1, 0.41721, 0.25, 18991.3),
        GroupPayment("m / a", 0.9, 0.99995, 0.75, 1002.0),
    )
    assert "at twice δ" in " ".join(found.conditions)
    assert "as they were released, with noise" in " ".join(found.conditions)


def test_shares_that_were_fixed_hold_in_advance() -> None:
    found = payments(
        replace(
            MEASURED,
            rule="equal",
            why="equal shares",
            errors=(NAN, NAN),
            counts=(NAN, NAN),
            fixed=True,
        )
    )
    assert [(one.standard_error, one.count) for one in found.lines] == [(None, None)] * 2
    assert len(found.conditions) == 1
    assert "twice" not in found.conditions[0]


def test_page_and_twin_hold_every_line() -> None:
    report = Report("A model", payments=payments(MEASURED))
    twin, page = to_dict(report), html.unescape(render(report))
    assert twin["payments"]["lines"][0] == {
        "group": "f / a",
        "share": 0.1,
        "epsilon": 0.41721,
        "standard_error": 0.25,
        "count": 18991.3,
    }
    assert '<data value="0.41721">0.418</data>' in page, (
        "rounded up: a page promises no more than the fit does"
    )
    assert '<data value="18991.3">18,991</data>' in page
    for words in (
        "What each group spends",
        "a weaker guarantee",
        *twin["payments"]["conditions"],
        twin["payments"]["rule"],
    ):
        assert words in page
    bare = Report("A model")
    assert to_dict(bare)["payments"] is None
    assert "What each group spends" not in render(bare)


def test_a_fit_without_privacy_says_infinity() -> None:
    twin = to_dict(
        Report("A model", payments=payments(replace(MEASURED, epsilons=(math.inf, math.inf))))
    )
    assert [one["epsilon"] for one in twin["payments"]["lines"]] == ["inf", "inf"]
    assert ">∞<" in html.unescape(
        render(Report("A model", payments=Payments("r", (GroupPayment("f", 1.0, math.inf),))))
    )


def test_hostile_names_of_groups_are_escaped_and_printable() -> None:
    found = payments(replace(MEASURED, groups=("<b>x</b>\n", "")))
    assert all(one.group.isprintable() and one.group for one in found.lines)
    assert len({one.group for one in found.lines}) == 2
    assert "<b>x" not in render(Report("A model", payments=found))


def test_what_is_no_tailoring_is_refused() -> None:
    with pytest.raises(InputError, match="tailoring_"):
        payments(None)
    with pytest.raises(InputError, match="payments"):
        Report("A model", payments=MEASURED)  # type: ignore[arg-type]
    for wrong in (
        {"share": NAN},
        {"epsilon": NAN},
        {"epsilon": -1.0},
        {"count": math.inf},
        {"group": ""},
    ):
        with pytest.raises(InputError):
            GroupPayment(**({"group": "f", "share": 0.5, "epsilon": 1.0} | wrong))  # type: ignore[arg-type]
