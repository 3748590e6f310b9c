"""Ring 5: reports. A page that is read without network and without JavaScript, and a JSON twin of every number on it."""

from ..figures import Floor, FrontierFigure, GapFigure, Measure, Point, Rate, RatesFigure, Series
from .certain import certain
from .contents import CertainLine, Certainty, Coefficient, GroupPayment, GroupSection, LedgerSection, Payments, Report
from .ledger import ledger
from .numbers import to_dict
from .page import render
from .payments import payments
from .writing import Written, write

__all__ = [
    "CertainLine",
    "Certainty",
    "Coefficient",
    "Floor",
    "FrontierFigure",
    "GapFigure",
    "GroupPayment",
    "GroupSection",
    "LedgerSection",
    "Measure",
    "Payments",
    "Point",
    "Rate",
    "RatesFigure",
    "Report",
    "Series",
    "Written",
    "certain",
    "ledger",
    "payments",
    "render",
    "to_dict",
    "write",
]
