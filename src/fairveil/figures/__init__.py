"""Ring 1: figures. Plain numbers in, an SVG with its text alternative out; knows nothing of models,
privacy or files."""

from .budget import BudgetFigure, BudgetPart, CourseFigure, Moment, svg_budget, svg_course
from .contents import (
    ERROR,
    GAP,
    Floor,
    FrontierFigure,
    GapFigure,
    Measure,
    Point,
    Rate,
    RatesFigure,
    Series,
)
from .curves import Curve, CurvesFigure, Rule, svg_curves
from .dark import with_dark
from .frontier import svg_frontier
from .gaps import svg_gaps, svg_rates
from .rate_panels import RatePanels, svg_rate_panels

__all__ = [
    "ERROR",
    "GAP",
    "BudgetFigure",
    "BudgetPart",
    "CourseFigure",
    "Curve",
    "CurvesFigure",
    "Floor",
    "FrontierFigure",
    "GapFigure",
    "Measure",
    "Moment",
    "Point",
    "Rate",
    "RatePanels",
    "RatesFigure",
    "Rule",
    "Series",
    "svg_budget",
    "svg_course",
    "svg_curves",
    "svg_frontier",
    "svg_gaps",
    "svg_rate_panels",
    "svg_rates",
    "with_dark",
]
