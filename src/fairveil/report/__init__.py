"""Ring 5: reports. A page that is read without network and without JavaScript, and a JSON twin of
every number on it."""

from ..figures import Floor, FrontierFigure, GapFigure, Measure, Point, Rate, RatesFigure, Series
from .audits import AuditSection, privacy_audit
from .baselines import baselines
from .certain import certain
from .certificates import CertificateLine, CertificateSection, certificate
from .contents import (
    Baseline,
    Baselines,
    CertainLine,
    Certainty,
    Coefficient,
    GroupPayment,
    GroupSection,
    LedgerSection,
    Payments,
    PrivateTableSection,
)
from .first_lines import Clause, FirstLine, first_lines
from .ledger import ledger
from .numbers import to_dict
from .page import render
from .payments import payments
from .private_tables import private_table
from .whole import Report
from .writing import Written, write

__all__ = [
    "AuditSection",
    "Baseline",
    "Baselines",
    "CertainLine",
    "Certainty",
    "CertificateLine",
    "CertificateSection",
    "Clause",
    "Coefficient",
    "FirstLine",
    "Floor",
    "FrontierFigure",
    "GapFigure",
    "GroupPayment",
    "GroupSection",
    "LedgerSection",
    "Measure",
    "Payments",
    "Point",
    "PrivateTableSection",
    "Rate",
    "RatesFigure",
    "Report",
    "Series",
    "Written",
    "baselines",
    "certain",
    "certificate",
    "first_lines",
    "ledger",
    "payments",
    "privacy_audit",
    "private_table",
    "render",
    "to_dict",
    "write",
]
