"""Displays: `from_...`, then `plot(ax=...)`; what is drawn is what was released, in the units and
words of the figures."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
import pytest

import fairveil as fv
from fairveil.core.events import Gaussian
from fairveil.errors import InputError
from fairveil.estimators.reports.baselines import BaselineReport, Compared
from fairveil.estimators.reports.constraint_report import ConstraintLine, ConstraintReport
from fairveil.estimators.tailored import TailoringReport
from fairveil.figures import FrontierFigure, Point, RatesFigure, Series

mpl = pytest.importorskip("matplotlib")
mpl.use("Agg")
from matplotlib import pyplot  # noqa: E402

N = 900
RNG = np.random.default_rng(0)
SEX = RNG.choice(["f", "m"], N)
Y = RNG.random(N) < 0.4
DECIDED = RNG.random(N) < np.where(SEX == "m", 0.5, 0.3)


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    pyplot.close("all")


def test_rates_by_group_are_those_of_the_table_on_the_axes_that_were_given() -> None:
    axes = pyplot.subplots()[1]
    display = fv.GroupRatesDisplay.from_predictions(Y, DECIDED, sensitive_features=SEX, ax=axes)
    assert display.ax_ is axes
    assert display.figure_ is axes.figure
    table = fv.group_table(Y, DECIDED, SEX)
    drawn = [artist.get_xdata()[0] for artist in display.artists_]
    expected = [row.rates["selection_rate[True]"].value for row in (*table.rows, table.overall)]
    assert drawn == expected
    assert [label.get_text() for label in axes.get_yticklabels()] == ["f", "m", "Everyone"]
    assert axes.get_xlabel() == "Selection rate of True (per cent)"
    axes.figure.canvas.draw()
    # per cent, though a fraction is drawn
    assert "50" in [label.get_text() for label in axes.get_xticklabels()]
    assert "m: " in display.description


def test_a_rate_may_be_chosen_and_an_unknown_one_is_refused() -> None:
    display = fv.GroupRatesDisplay.from_predictions(
        Y, DECIDED, sensitive_features=SEX, rate="error", confidence=0.9
    )
    assert display.ax_.get_xlabel() == "Error (per cent)"
    assert "90%" in display.description
    with pytest.raises(InputError, match="Known: selection_rate"):
        fv.GroupRatesDisplay.from_predictions(Y, DECIDED, sensitive_features=SEX, rate="precision")


def test_rates_of_a_private_table_and_of_a_certificate_are_drawn() -> None:
    found = fv.private_audit(DECIDED, None, Y, sensitive_features=SEX, epsilon=1.0, random_state=0)
    display = fv.GroupRatesDisplay.from_private_table(found, rate="error")
    shares = [line.rates["error"].value for line in found.lines.values()]
    assert [artist.get_xdata()[0] for artist in display.artists_] == shares
    assert 'scope="row"' in found._repr_html_()
    with pytest.raises(InputError, match="Known: "):
        fv.GroupRatesDisplay.from_private_table(found, rate="precision")


def test_a_small_group_is_hollow_and_an_undefined_rate_is_said() -> None:
    groups, labels = np.array(["few"] * 5 + ["many"] * 100), np.arange(105) < 50
    decided, options = np.full(105, True), {"sensitive_features": groups}
    display = fv.GroupRatesDisplay.from_predictions(
        labels, decided, rate="false_positive_rate[True]", **options
    )
    assert [text.get_text() for text in display.ax_.texts] == ["undefined"]
    assert len(display.artists_) == 2
    display = fv.GroupRatesDisplay.from_predictions(labels, decided, **options)
    assert [artist.get_markerfacecolor() == "white" for artist in display.artists_] == [
        True,
        False,
        False,
    ]


LINES = (
    ConstraintLine("f - m <= 0.05", 0.05, 0.03, 0.002, 0.0, 3, 1, 0.004),
    ConstraintLine("m - f <= 0.05", 0.05, -0.03, 0.002, 0.0, 3, 1, 0.004),
    ConstraintLine("missed <b> <= 0.1", 0.1, 0.2, 0.002, 0.0, 3, 1, 0.004),
    ConstraintLine("nobody <= 0.1", 0.1, float("nan"), 0.002, 0.0, 3, 1),
)


def test_constraints_have_their_bound_both_intervals_and_the_verdict() -> None:
    report = ConstraintReport(LINES, 10, "all rounds of the plan were done")
    display = fv.ConstraintDisplay.from_report(report)
    labels = [label.get_text() for label in display.ax_.get_yticklabels()]
    # m - f says the same as f - m
    assert labels == ["f - m\nmet", "missed <b>\nnot met", "nobody\ncannot be told"]
    assert [artist.get_xdata()[0] for artist in display.artists_] == [0.03, 0.2]
    assert [artist.get_marker() for artist in display.artists_] == ["o", "x"]
    ends = [part.get_segments()[0][:, 0].tolist() for part in display.ax_.collections]
    noise, both = 1.959964 * 0.002, 1.959964 * np.hypot(0.002, 0.004)
    assert ends[0] == pytest.approx([0.05, 0.05])
    assert ends[1] == pytest.approx([0.03 - both, 0.03 + both])
    assert ends[2] == pytest.approx([0.03 - noise, 0.03 + noise])
    assert (
        "f - m: 3.0 points, 95% interval over the noise 2.6 to 3.4 points, required: at most 5.0 "
        "points, met." in (display.description)
    )


def test_a_report_in_a_notebook_is_a_table_with_every_text_escaped() -> None:
    shown = ConstraintReport(LINES, 10, "done")._repr_html_()
    assert shown.count("<tr>") == 1 + len(LINES)
    assert "missed &lt;b&gt;" in shown
    assert "<b>" not in shown
    assert "3.0 points" in shown
    assert ConstraintReport((), 0, "done")._repr_html_() == "<p>No constraint was required.</p>"


def test_a_fit_without_constraints_is_refused() -> None:
    with pytest.raises(InputError, match="constraint_report_"):
        fv.ConstraintDisplay.from_estimator(fv.FermiClassifier())


def test_a_frontier_has_a_curve_an_epsilon_and_bars_at_its_intervals() -> None:
    point = Point(0.2, 0.05, error_low=0.19, error_high=0.22, target=0.05)
    series = (
        Series("Fairveil", 1.0, "records", (point, Point(0.18, 0.1))),
        Series("fairlearn", float("inf"), "nothing", (point,)),
    )
    display = fv.FrontierDisplay(FrontierFigure("demographic parity", "census", series)).plot()
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert legend == ["Fairveil, ε = 1: record-level privacy", "fairlearn: not private"]
    line, _, (across, up) = display.artists_[0]
    assert line.get_xdata().tolist() == [0.05, 0.1]
    assert up.get_segments()[0][:, 1].tolist() == pytest.approx([0.19, 0.22])
    assert across.get_segments()[0][:, 0].tolist() == pytest.approx([0.05, 0.05])
    assert display.ax_.get_xlabel() == "Gap (percentage points)"
    assert "2 curves" in display.description


def test_a_budget_has_a_row_a_release_and_what_is_left() -> None:
    ledger = fv.Ledger.create(None, "census <1>", 1.0, 1e-6)
    for purpose in ("counts", "model"):
        ledger.reserve(Gaussian(12.0), purpose=purpose).commit()
    display = fv.BudgetDisplay.from_ledger(ledger)
    widths = [bar.get_width() for bar in display.artists_]
    assert sum(widths) == pytest.approx(1.0)
    assert widths[-1] == pytest.approx(ledger.balance().left_share)
    labels = [label.get_text().split("  ")[0] for label in display.ax_.get_yticklabels()]
    assert labels == ["counts", "model", "left"]
    course = fv.BudgetDisplay.from_ledger(ledger, kind="time")
    assert course.artists_[0].get_ydata()[-1] == pytest.approx(ledger.balance().spent_share)
    assert "census &lt;1&gt;" in ledger._repr_html_()


def test_the_noise_of_a_plan_is_drawn_with_the_required_bound() -> None:
    schema = fv.data.Schema(
        {
            "x": fv.data.Number(0, 1),
            "sex": fv.data.Category(("f", "m")),
            "y": fv.data.Category(("no", "yes")),
        },
        target="y",
        sensitive="sex",
        rows=20_000,
    )
    clf = fv.RateConstrainedClassifier("demographic_parity:0.05", schema=schema)
    display = fv.NoiseDisplay.from_estimator(clf)
    assert display.ax_.get_xscale() == display.ax_.get_yscale() == "log"
    curve = display.contents.curves[0]
    assert display.artists_[0].get_ydata().tolist() == [up for _, up in curve.points]
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert legend[-2:] == ["required: 5 points", "epsilon 1"]


def test_a_statement_and_a_group_table_are_tables_in_a_notebook() -> None:
    statement = fv.PrivacyStatement.of(
        fv.Promise(1.0, 1e-6), [Gaussian(12.0)], plan=[Gaussian(12.0)]
    )
    shown = statement._repr_html_()
    assert ">Not covered</th>" in shown
    assert shown.count("<tr>") == 19
    table = fv.group_table(Y, DECIDED, SEX)._repr_html_()
    assert table.count("<tr>") == 1 + 3
    page = fv.report.Report("A <page>", statement=statement)._repr_html_()
    assert page.startswith('<iframe title="A &lt;page&gt;" srcdoc="&lt;!')
    assert "<script" not in page


def test_baselines_and_shares_are_tables_in_a_notebook() -> None:
    nan = float("nan")
    told = TailoringReport(
        ("f", "<m>"),
        "equal",
        "equal shares",
        (0.5, 0.5),
        (nan, nan),
        (70.0, 30.0),
        (1.0, 1.0),
        True,
    )
    assert "&lt;m&gt;" in told._repr_html_()
    assert told._repr_html_().count("<tr>") == 1 + 2
    line = Compared("constant", "<always>", 0.25, -0.1, 0.01, True)
    shown = BaselineReport(0.15, 0.01, (line,))._repr_html_()
    assert "&lt;always&gt;" in shown
    assert "25.0 %" in shown


@pytest.mark.parametrize("wrong", [3, "axes"])
def test_wrong_axes_and_wrong_contents_are_refused(wrong: object) -> None:
    with pytest.raises(InputError, match="one pair of axes"):
        fv.GroupRatesDisplay.from_predictions(Y, DECIDED, sensitive_features=SEX, ax=wrong)
    for display in (
        fv.BudgetDisplay,
        fv.ConstraintDisplay,
        fv.FrontierDisplay,
        fv.GroupRatesDisplay,
        fv.NoiseDisplay,
    ):
        with pytest.raises(InputError, match="contents"):
            display(wrong)  # type: ignore[arg-type]


def test_without_matplotlib_the_remedy_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    figure = RatesFigure("Error", (fv.figures.Rate("f", 0.1, None, None, 10),))
    with pytest.raises(InputError, match=r"fairveil\[report\]"):
        fv.GroupRatesDisplay(figure).plot()
