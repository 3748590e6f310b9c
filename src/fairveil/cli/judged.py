"""Whose decisions a command looks at, with labels and groups: a column of the table, or a saved
model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..estimators.wrapped.decided_rows import Made
    from .deciding import Fitted
    from .samples import Truth
    from .tables import Place

ELSEWHERE = "-"
"""In place of a folder of a model: decisions are a column."""


def decisions_of(
    place: Place,
    target: str | None,
    sensitive: list[str] | None,
    prediction: str | None,
    model: Path | None,
) -> tuple[Truth, Any, Any, bool]:
    """Labels, groups, decisions (or the distribution of decisions made by chance), the known
    classes, and whether it is a distribution."""
    from ..errors import InputError
    from .deciding import by_chance, loaded, shown_to
    from .samples import Roles, Truth
    from .tables import picked

    if model is None:
        roles = Roles.of(None, target, sensitive, None)
        _require_groups(roles.sensitive)
        columns = place.columns(only={roles.target, str(prediction), *roles.sensitive})
        picked(columns, [roles.target], place.shown, "--target")
        picked(columns, [str(prediction)], place.shown, "--prediction")
        truth = Truth(
            columns[roles.target], picked(columns, roles.sensitive, place.shown, "--sensitive")
        )
        decisions = columns[str(prediction)]
        if not len(decisions):
            raise InputError.expected(
                "some rows", of=place.shown, got="none", remedy="Pass a table with rows."
            )
        return truth, decisions, None, False
    clf = loaded(model)
    truth = truth_of(clf, place, target, sensitive)
    return (
        truth,
        shown_to(clf, place, names_read(clf, place, sensitive)).judged(),
        clf.classes_.tolist(),
        by_chance(clf),
    )


def truth_of(clf: Fitted, place: Place, target: str | None, sensitive: list[str] | None) -> Truth:
    """Labels and groups: by the model's schema where it has one and names them, else as they
    come."""
    from ..estimators.reading.coding import SchemaCoding
    from .deciding import coding_of
    from .samples import CodedSample, Roles, Truth
    from .tables import picked

    coding = coding_of(clf)
    schema = coding.encoding.schema if isinstance(coding, SchemaCoding) else None
    of_model = () if clf.cells_ is None else clf.cells_.names
    named = sensitive or list(of_model if schema is None else schema.sensitive)
    label = target or (None if schema is None else schema.target)
    known = schema is not None and set(named) <= set(schema.sensitive) and label == schema.target
    roles = Roles.of(schema if known else None, label, named, None)
    _require_groups(roles.sensitive)
    if known:
        sample = Roles(roles.schema, roles.target, roles.sensitive).read(place)
        assert isinstance(sample, CodedSample)
        return sample.truth()
    words = [roles.target] if all(isinstance(value, str) for value in clf.classes_.tolist()) else []
    columns = place.columns(words, only={roles.target, *roles.sensitive})
    labels = picked(columns, [roles.target], place.shown, "--target")[roles.target]
    return Truth(labels, picked(columns, roles.sensitive, place.shown, "--sensitive"))


def names_read(clf: Fitted, place: Place, sensitive: list[str] | None) -> list[str] | None:
    """What --sensitive names, where it stands for the columns by which a model decides: they have
    other names here."""
    from .deciding import groups_read

    cells = groups_read(clf)
    if cells is None or not sensitive or len(sensitive) != len(cells.names):
        return None
    return None if set(cells.names) <= set(place.columns(only=())) else sensitive


def _require_groups(sensitive: tuple[str, ...]) -> None:
    from ..errors import InputError

    if not sensitive:
        remedy = "Name the column that makes groups: --sensitive sex, for example."
        raise InputError.expected("a column", of="--sensitive", got=None, remedy=remedy)


def drawn_decisions(
    model: str,
    place: Place,
    target: str | None,
    sensitive: list[str] | None,
    prediction: str | None,
    seed: int | None,
) -> tuple[Truth, Made]:
    """Labels, groups and decisions; of a model that is randomized one draw a person."""
    from ..estimators.wrapped.decided_rows import GIVEN, Made
    from .deciding import by_chance, loaded, shown_to

    if model == ELSEWHERE:
        truth, decisions, _, _ = decisions_of(place, target, sensitive, prediction, None)
        return truth, Made(decisions, GIVEN, ())
    clf = loaded(Path(model))
    truth = truth_of(clf, place, target, sensitive)
    shown = shown_to(clf, place, names_read(clf, place, sensitive))
    decided = shown.drawn(shown.law(), seed) if by_chance(clf) else shown.decisions()
    cells = clf.cells_
    known = cells if cells is not None and set(cells.names) == set(truth.groups) else None
    return truth, Made(decided, type(clf).__name__, tuple(clf.classes_.tolist()), known)
