"""Ring 5: reports. A page that is read without network and without JavaScript, and a JSON twin of every number on it."""

from ..figures import Floor, FrontierFigure, GapFigure, Measure, Point, Rate, RatesFigure, Series
from .certain import certain
from .contents import CertainLine, Certainty, Coefficient, GroupSection, Report
from .numbers import to_dict
from .page import render
from .writing import Written, write

__all__ = [
    "CertainLine",
    "Certainty",
    "Coefficient",
    "Floor",
    "FrontierFigure",
    "GapFigure",
    "GroupSection",
    "Measure",
    "Point",
    "Rate",
    "RatesFigure",
    "Report",
    "Series",
    "Written",
    "certain",
    "render",
    "to_dict",
    "write",
]
