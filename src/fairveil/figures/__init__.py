"""Ring 1: figures. Plain numbers in, an SVG with its text alternative out; knows nothing of models, privacy or files."""

from .contents import ERROR, GAP, Floor, FrontierFigure, GapFigure, Measure, Point, Rate, RatesFigure, Series
from .curves import Curve, CurvesFigure, svg_curves
from .frontier import svg_frontier
from .gaps import svg_gaps, svg_rates

__all__ = [
    "ERROR",
    "GAP",
    "Curve",
    "CurvesFigure",
    "Floor",
    "FrontierFigure",
    "GapFigure",
    "Measure",
    "Point",
    "Rate",
    "RatesFigure",
    "Series",
    "svg_curves",
    "svg_frontier",
    "svg_gaps",
    "svg_rates",
]
