"""Rates by group on axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from sklearn.base import BaseEstimator

from .. import _checks
from .._types import ColumnsLike, TableLike
from ..errors import InputError
from ..estimators import Certificate, PrivateTable
from ..figures import RatesFigure
from ..figures.axes_rows import draw_rates
from ..figures.words import rates_description
from ..metrics import GroupTable, group_table
from ..report import certificate as certificate_section
from ..report import private_table as private_section
from ..report.rates import columns, rate_words, rates_figure
from .display import Display

if TYPE_CHECKING:
    from ..figures.axes import Axes


class GroupRatesDisplay(Display):
    """One rate of each group with its interval; marks of small groups are hollow.

    Use one of the methods below, then `plot`. Rates of `from_predictions`, `from_estimator` and
    `from_table` are exact, and no guarantee covers them. Those of `from_private_table` and
    `from_certificate` were released with noise.

    Attributes
    ----------
    contents : RatesFigure
        The rates.
    ax_ : matplotlib axes
        Axes of the picture, once drawn.
    figure_ : matplotlib figure
        Figure of the picture, once drawn.
    artists_ : list
        Drawn marks, in the order of the contents.
    """

    def __init__(self, contents: RatesFigure) -> None:
        _checks.instance(
            RatesFigure,
            "contents",
            contents,
            "Pass a RatesFigure, or use GroupRatesDisplay.from_predictions.",
        )
        self.contents = contents

    @classmethod
    def from_predictions(
        cls,
        y_true: ColumnsLike,
        y_pred: ColumnsLike,
        *,
        sensitive_features: ColumnsLike,
        rate: str | None = None,
        ax: object = None,
        **options: Any,
    ) -> Self:
        """Draw a rate of decisions on these rows.

        Parameters
        ----------
        y_true : array
            Labels.
        y_pred : array
            Decisions.
        sensitive_features : array or table
            Groups of the rows.
        rate : str, default=None
            Such as ``"error"`` or ``"selection_rate[yes]"``. None: the selection rate of the
            positive class.
        ax : matplotlib axes, default=None
            Axes to draw on. None: new axes.
        **options
            Those of `fairveil.group_table`, such as ``confidence``.

        Returns
        -------
        GroupRatesDisplay
            The display, drawn.
        """
        return cls.from_table(
            group_table(y_true, y_pred, sensitive_features, **options), rate=rate, ax=ax
        )

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: TableLike,
        y: ColumnsLike,
        *,
        sensitive_features: ColumnsLike,
        rate: str | None = None,
        ax: object = None,
        **options: Any,
    ) -> Self:
        """Draw a rate of an estimator's decisions on these rows.

        Parameters
        ----------
        estimator : estimator
            A fitted classifier.
        X : table or array
            Features.
        y : array
            Labels.
        sensitive_features : array or table
            Groups of the rows.
        rate : str, default=None
            Such as ``"error"`` or ``"selection_rate[yes]"``. None: the selection rate of the
            positive class.
        ax : matplotlib axes, default=None
            Axes to draw on. None: new axes.
        **options
            Those of `fairveil.group_table`, such as ``confidence``.

        Returns
        -------
        GroupRatesDisplay
            The display, drawn.
        """
        options = {"sensitive_features": sensitive_features, "rate": rate, "ax": ax, **options}
        return cls.from_predictions(y, estimator.predict(X), **options)

    @classmethod
    def from_table(cls, table: GroupTable, *, rate: str | None = None, ax: object = None) -> Self:
        """Draw a rate of a `fairveil.group_table`.

        Parameters
        ----------
        table : GroupTable
            The exact table.
        rate : str, default=None
            Such as ``"error"`` or ``"selection_rate[yes]"``. None: the selection rate of the
            positive class.
        ax : matplotlib axes, default=None
            Axes to draw on. None: new axes.

        Returns
        -------
        GroupRatesDisplay
            The display, drawn.
        """
        _checks.instance(GroupTable, "table", table, "Pass what fairveil.group_table(...) returns.")
        found = columns(table)[0] if rate is None else rate
        if found not in table.overall.rates:
            raise _unknown(rate, tuple(table.overall.rates))
        return cls(rates_figure(table, found)).plot(ax)

    @classmethod
    def from_private_table(
        cls, table: PrivateTable, *, rate: str | None = None, ax: object = None
    ) -> Self:
        """Draw a main rate of a `fairveil.private_audit`, every level of groups below each other.

        Parameters
        ----------
        table : PrivateTable
            The released table.
        rate : str, default=None
            Name of the rate. None: the first.
        ax : matplotlib axes, default=None
            Axes to draw on. None: new axes.

        Returns
        -------
        GroupRatesDisplay
            The display, drawn.
        """
        _checks.instance(
            PrivateTable, "table", table, "Pass what fairveil.private_audit(...) returns."
        )
        figures = {one.name: one for one in private_section(table).rates}
        name = next(iter(figures)) if rate is None else rate_words(rate)
        if name not in figures:
            raise _unknown(rate, table.layout.main)
        return cls(figures[name]).plot(ax)

    @classmethod
    def from_certificate(cls, certificate: Certificate, *, ax: object = None) -> Self:
        """Draw the rates that a certificate compares, with their intervals in the population.

        Parameters
        ----------
        certificate : Certificate
            The certificate.
        ax : matplotlib axes, default=None
            Axes to draw on. None: new axes.

        Returns
        -------
        GroupRatesDisplay
            The display, drawn.
        """
        _checks.instance(
            Certificate, "certificate", certificate, "Pass what fairveil.certify(...) returns."
        )
        found = certificate_section(certificate).rates
        if found is None:
            remedy = "Certify a notion that compares rates."
            raise InputError.expected(
                "a certificate with rates", of="certificate", got="none", remedy=remedy
            )
        return cls(found).plot(ax)

    @property
    def description(self) -> str:
        """The picture in words: each group's rate."""
        return rates_description(self.contents)

    def _draw(self, axes: Axes) -> list[Any]:
        return draw_rates(self.contents, axes)


def _unknown(rate: str | None, known: tuple[str, ...]) -> InputError:
    return InputError.expected(
        "a rate of this table", of="rate", got=rate, remedy=f"Known: {', '.join(known)}."
    )
