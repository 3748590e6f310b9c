"""Ring 0: results as parts. Facts, tables and charts are said once, and shown as text, HTML, JSON
and on pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from .card import model_card as model_card
    from .charts import Axis as Axis
    from .charts import Curve as Curve
    from .charts import Curves as Curves
    from .charts import Row as Row
    from .charts import Rows as Rows
    from .charts import Rule as Rule
    from .frontier import Point as Point
    from .frontier import Series as Series
    from .parts import Column as Column
    from .parts import Fact as Fact
    from .parts import Facts as Facts
    from .parts import Note as Note
    from .parts import Shown as Shown
    from .parts import Table as Table
    from .pictures import Chart as Chart
    from .report import People as People
    from .report import Report as Report
    from .report import Requirement as Requirement

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazily(__name__)
