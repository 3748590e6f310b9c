"""The spends of a diffprivlib `BudgetAccountant` as events, with the tools that made them.

An accountant holds pairs (epsilon, delta) and does not say of what, nor between which neighbours.
The sensitivities of that library differ in their relation from tool to tool, so the caller names
the tools. `KNOWN` says what was found by reading version 0.6.6: the relation that a tool's
sensitivity is for, or why its promise does not hold. Of other tools nothing is known here; a note
of the import says so, and their relation is the caller's word.

Guarantees (tests/privacy/importing/test_importing_diffprivlib.py):
1. Every spend of the accountant is an event.
2. A tool whose sensitivity is for other neighbours than those named is refused, as is one that is
   known to break its promise.
3. A fitted model whose spend went to another accountant (a clone's) is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ... import _checks
from ..accounting.inventory import checked_relation
from ..events import Approximate, Event, NonPrivate, NoOp, Pure, compose
from .imported import Imported, plain_number, refusal, version_of

REPLACED = "replace-one"
PRESENT = "add-remove"
KNOWN: dict[str, str] = {
    **dict.fromkeys(
        ("mean", "nanmean", "var", "nanvar", "std", "nanstd", "sum", "nansum", "count_nonzero"),
        REPLACED,
    ),
    **dict.fromkeys(("quantile", "percentile", "median"), REPLACED),
    **dict.fromkeys(("histogram", "histogram2d", "histogramdd"), PRESENT),
}
"""The relation that the sensitivity of a tool is for: (upper - lower) or 1/n of it for a row
replaced, 1 for a row that comes."""
BROKEN: dict[str, str] = {
    "LinearRegression": "its sums of squared features get noise by the lower bound of a feature "
    "alone, none where that is 0"
}
"""Tools that release more than they spend, and why."""


def from_diffprivlib(
    accountant: object,
    *,
    tools: Iterable[object],
    neighbours: str,
    rows_per_person: int,
    secure_noise: bool = False,
) -> Imported:
    """What a `BudgetAccountant` has counted, or its list `spent_budget`.

    `tools`: every tool that spent from it: fitted models, classes, functions or their names.
    `secure_noise`: whether none had a `random_state`.

    >>> spent = from_diffprivlib(
    ...     [(0.5, 0.0), (0.5, 0.0)], tools=["mean"], neighbours="replace-one", rows_per_person=1
    ... )
    >>> spent.events
    Repeated(event=Pure(epsilon=0.5), count=2)
    """
    relation = checked_relation(neighbours)
    events = [_event(pair) for pair in _spends(accountant)]
    used = _used(tools)
    for name, tool in used:
        _require_sound(name, relation)
        _require_own(name, tool, accountant)
    if len({id(tool) for _, tool in used if _is_fitted(tool)}) > len(events):
        remedy = (
            "Each fit spends once: a model whose spend is missing spent from another accountant."
        )
        raise refusal(
            "a spend for each fitted model", "accountant", f"{len(events)} spends", remedy
        )
    unknown = sorted({name for name, _ in used if name not in KNOWN})
    notes = tuple(
        f"Nothing is known here of the sensitivity of {name}, or of its relation: both are the "
        f"caller's word."
        for name in unknown
    )
    library = version_of("diffprivlib")
    event = compose(events)
    return Imported.of(
        event,
        relation,
        library,
        rows_per_person=rows_per_person,
        notes=notes,
        secure_noise=secure_noise,
    )


def _event(pair: tuple[float, float]) -> Event:
    epsilon, delta = pair
    if delta >= 1 or epsilon == float("inf"):
        return NonPrivate()
    if delta > 0:
        return Approximate(epsilon, delta)
    return Pure(epsilon) if epsilon > 0 else NoOp()


def _spends(accountant: object) -> list[tuple[float, float]]:
    found = getattr(accountant, "spent_budget", accountant)
    remedy = "Pass the BudgetAccountant, or its spent_budget."
    if isinstance(found, str | bytes) or not isinstance(found, Sequence):
        raise refusal("a BudgetAccountant", "accountant", accountant, remedy)
    out = []
    for pair in found:
        if not isinstance(pair, Sequence) or len(pair) != 2:
            raise refusal("pairs (epsilon, delta)", "accountant", repr(pair)[:80], remedy)
        epsilon, delta = map(plain_number, pair)
        out.append(
            (_checks.non_negative(allow_inf=True, epsilon=epsilon), _checks.fraction(delta=delta))
        )
    return out


def _used(tools: object) -> list[tuple[str, object]]:
    remedy = "List everything that spent from this accountant: mean, a model, and so on."
    if isinstance(tools, str | bytes) or not isinstance(tools, Iterable):
        raise refusal("a list of tools", "tools", tools, remedy)
    used: list[tuple[str, object]] = []
    for tool in tools:
        name = tool if isinstance(tool, str) else getattr(tool, "__name__", type(tool).__name__)
        used.append((str(name), tool))
    if not used:
        raise refusal("at least one tool", "tools", "none", remedy)
    return used


def _require_sound(name: str, relation: str) -> None:
    if name in BROKEN:
        remedy = f"It does not keep its guarantee: {BROKEN[name]}."
        raise refusal("a tool that keeps its guarantee", "tools", name, remedy)
    own = KNOWN.get(name, relation)
    if own != relation:
        remedy = f"Name {own} as the neighbours." + (
            " A ledger for replace-one takes that, too." if own == PRESENT else ""
        )
        raise refusal(
            f"{own!r}, which the sensitivity of {name} is for", "neighbours", relation, remedy
        )


def _require_own(name: str, tool: object, accountant: object) -> None:
    """A clone has a copy of the accountant: what it spends is in no list but its own."""
    own = getattr(tool, "accountant", None)
    if (
        isinstance(tool, type)
        or own is None
        or isinstance(accountant, Sequence)
        or own is accountant
    ):
        return
    remedy = (
        "Searches and clones spend from a copy of the accountant: import model.accountant, of "
        "every copy that was fitted."
    )
    raise refusal(
        "a model that spent from this accountant", "tools", f"{name} with another", remedy
    )


def _is_fitted(tool: object) -> bool:
    held = (
        vars(tool)
        if hasattr(tool, "__dict__") and not isinstance(tool, type) and not callable(tool)
        else {}
    )
    return any(name.endswith("_") and not name.startswith("_") for name in held)
