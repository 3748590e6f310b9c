"""A tree of DpEvents (dp_accounting, jax_privacy) as events of this accounting.

A DpEvent describes a mechanism; which data sets are neighbours is told to the accountant that
prices it. So the caller names the relation here, too. `noise_multiplier` is documented as noise
over the norm C of one record's contribution; a replaced record moves a sum by up to 2 C, so
unsampled events are mapped at half their multiplier under replace-one. (Of that library's
accountants one does so and the other does not.) Who divided by the sensitivity under the relation
instead says `multipliers="sensitivity"`.

`neighbours` may also be a `NeighboringRelation`. Its REPLACE_SPECIAL (a record becomes an empty
one) has a public number of records, so it is mapped to replace-one: a record replaced is one
emptied and one filled.

No other library is imported: objects are read by class and fields, as are their named tuples and
these as JSON.

Guarantees (tests/privacy/importing/test_importing_dp_events.py):
1. Every event of the tree is in the result, as often as it is in the tree.
2. Under each relation no event costs less than its mechanism, by closed forms and by
   dp_accounting's own accountants.
3. What has no event, or no meaning under the relation, is refused with its reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ... import _checks
from ...core.events import (
    Composed,
    Event,
    NonPrivate,
    NoOp,
    PoissonSampled,
    PrivateSelection,
    Repeated,
    compose,
)
from . import dp_noise
from .imported import Imported, plain_number, refusal, version_of

RELATIONS = {
    "add-remove": "add-remove",
    "replace-one": "replace-one",
    "ADD_OR_REMOVE_ONE": "add-remove",
    "REPLACE_ONE": "replace-one",
    "REPLACE_SPECIAL": "replace-special",
}
MULTIPLIERS = ("norm", "sensitivity")
DEEPEST = 50
REASONS = {
    "UnsupportedDpEvent": "it says that nobody can price it",
    "SampledWithReplacementDpEvent": "a record may be in one batch several times, which no event "
    "describes",
}


def from_dp_event(
    spent: object,
    *,
    neighbours: object,
    rows_per_person: int,
    multipliers: str = "norm",
    secure_noise: bool = False,
) -> Imported:
    """What a DpEvent describes: the object, its named tuple, or that as a JSON object.

    `neighbours`: "add-remove", "replace-one", or a `NeighboringRelation`. `multipliers`: "norm", as
    documented, or "sensitivity".

    >>> inner = {"class_name": "LaplaceDpEvent", "noise_multiplier": 2.0}
    >>> event = {"class_name": "SelfComposedDpEvent", "count": 3, "event": inner}
    >>> from_dp_event(event, neighbours="replace-one", rows_per_person=1).events
    Repeated(event=Laplace(noise_multiplier=1.0), count=3)
    """
    named = getattr(neighbours, "name", neighbours)
    if not isinstance(named, str) or named not in RELATIONS:
        remedy = "Pass the relation that the guarantee is for."
        raise refusal(
            "'add-remove', 'replace-one' or a NeighboringRelation", "neighbours", str(named), remedy
        )
    reader = _Reader(RELATIONS[named], _checks.one_of(MULTIPLIERS, multipliers=multipliers))
    event = compose([reader.read(spent, 0)])
    relation = "add-remove" if RELATIONS[named] == "add-remove" else "replace-one"
    notes = tuple(dict.fromkeys(reader.notes))
    library = version_of("dp_accounting")
    return Imported.of(
        event,
        relation,
        library,
        rows_per_person=rows_per_person,
        notes=notes,
        secure_noise=secure_noise,
    )


class _Reader:
    """One walk over a tree. `relation` may be "replace-special"."""

    def __init__(self, relation: str, multipliers: str) -> None:
        self.relation, self.multipliers = relation, multipliers
        self.notes: list[str] = []

    @property
    def own(self) -> str:
        return "add-remove" if self.relation == "add-remove" else "replace-one"

    @property
    def share(self) -> float:
        """What a multiplier over the norm is times, to be one over the sensitivity."""
        return 0.5 if self.own == "replace-one" and self.multipliers == "norm" else 1.0

    def read(self, given: object, depth: int) -> Event:
        name, fields = _described(given, depth)
        try:
            return self._event(name, fields, depth)
        except KeyError as missing:
            raise refusal(
                f"a field {missing}",
                name,
                ", ".join(fields),
                "Pass the event as dp_accounting made it.",
            ) from None

    def _event(self, name: str, fields: Mapping[str, Any], depth: int) -> Event:
        match name:
            case "NoOpDpEvent":
                return NoOp()
            case "NonPrivateDpEvent":
                return NonPrivate()
            case "ComposedDpEvent":
                return Composed(
                    tuple(self.read(one, depth + 1) for one in _listed(fields["events"], name))
                )
            case "SelfComposedDpEvent":
                return Repeated(
                    self.read(fields["event"], depth + 1),
                    _checks.whole(count=plain_number(fields["count"])),
                )
            case "PoissonSampledDpEvent":
                return self._poisson(fields, depth)
            case "SampledWithoutReplacementDpEvent":
                return self._without_replacement(fields, depth)
            case "TruncatedSubsampledGaussianDpEvent":
                self._require_replaced(
                    name, "a record that comes may push another out of the batch"
                )
                event, note = dp_noise.truncated(fields, self.share)
            case "SingleEpochTreeAggregationDpEvent":
                self._require_replaced(name, "a record that comes moves the others to other leaves")
                event, note = dp_noise.tree(fields, self.share)
            case "RepeatAndSelectDpEvent":
                inner = self.read(fields["event"], depth + 1)
                mean, shape = (plain_number(fields[one]) for one in ("mean", "shape"))
                return PrivateSelection(inner, mean, shape)  # type: ignore[arg-type]  # it checks
            case "RandomizedResponseDpEvent":
                self._require_replaced(name, "its answers show how many people there are")
                event, note = dp_noise.randomized_response(fields)
            case "MixtureOfGaussiansDpEvent":
                if self.relation != "add-remove":
                    raise refusal(
                        "add-remove for this event",
                        name,
                        self.relation,
                        "It describes one record against none.",
                    )
                event, note = dp_noise.mixture(fields)
            case "ZCDpEvent":
                event, note = dp_noise.zero_concentrated(
                    fields, emptied=self.relation == "replace-special"
                )
            case _:
                found = dp_noise.leaf(name, fields, self.share)
                if found is None:
                    why = REASONS.get(name, "it is not known here")
                    raise refusal("an event that can be mapped", "event", name, f"Refused: {why}.")
                return found
        if note:
            self.notes.append(note)
        return event

    def _poisson(self, fields: Mapping[str, Any], depth: int) -> Event:
        """One joint release on one batch. A batch of a batch has the product of both rates."""
        rate = _checks.fraction(sampling_probability=plain_number(fields["sampling_probability"]))
        name, inner = described(fields["event"])
        if name == "PoissonSampledDpEvent":
            product = rate * _checks.fraction(
                sampling_probability=plain_number(inner["sampling_probability"])
            )
            return self._poisson(
                {"sampling_probability": product, "event": inner["event"]}, depth + 1
            )
        if rate == 0:
            self.read(fields["event"], depth + 1)  # for its errors
            return NoOp()
        if rate == 1:
            return self.read(fields["event"], depth + 1)
        parts = self._joint(fields["event"], 1.0, depth + 1)
        if any(isinstance(part, NonPrivate) for part in parts):
            return NonPrivate()
        if self.own == "replace-one" and self.multipliers == "sensitivity":
            remedy = (
                "Divide by the norm of one record's contribution, as dp_accounting documents, and "
                "say 'norm'."
            )
            raise refusal(
                "multipliers over the norm inside a sample", "multipliers", "sensitivity", remedy
            )
        return (
            PoissonSampled(rate, Composed(parts) if len(parts) > 1 else parts[0])
            if parts
            else NoOp()
        )

    def _without_replacement(self, fields: Mapping[str, Any], depth: int) -> Event:
        """A batch of m among n records, a record replaced: q times the profile at 1 + (e^eps -
        1)/q, q = m/n, of the release on the batch (Balle, Barthe and Gaboardi 2018, Theorem 9).
        That is the profile of theory.md#t3 with c = d, the sensitivity."""
        name = "SampledWithoutReplacementDpEvent"
        self._require_replaced(
            name, "a batch of fixed size shows nothing only where the number of records is public"
        )
        size = _checks.whole(
            at_least=1, source_dataset_size=plain_number(fields["source_dataset_size"])
        )
        taken = _checks.whole(sample_size=plain_number(fields["sample_size"]))
        if taken > size:
            raise refusal(
                f"a sample of at most {size}",
                name,
                taken,
                "Without replacement there are no more records.",
            )
        parts = self._joint(fields["event"], self.share, depth + 1)
        if any(isinstance(part, NonPrivate) for part in parts):
            return NonPrivate() if taken else NoOp()
        if not parts or not taken:
            return NoOp()
        if taken == size:
            return Composed(parts)
        return PoissonSampled(
            taken / size, Composed(parts) if len(parts) > 1 else parts[0], (1.0,) * len(parts)
        )

    def _joint(self, given: object, share: float, depth: int) -> tuple[Event, ...]:
        """The noise events of one release on one batch."""
        name, fields = _described(given, depth)
        if name == "ComposedDpEvent":
            return tuple(
                part
                for one in _listed(fields["events"], name)
                for part in self._joint(one, share, depth + 1)
            )
        if name == "SelfComposedDpEvent":
            count = _checks.whole(count=plain_number(fields["count"]))
            inner = self._joint(fields["event"], share, depth + 1) if count else ()
            if len(inner) * count > dp_noise.MOST_PARTS:
                remedy = (
                    "Sample each time anew, if that is what was done: SelfComposed of the sampled "
                    "event."
                )
                raise refusal(
                    f"at most {dp_noise.MOST_PARTS} releases on one batch", name, count, remedy
                )
            return inner * count
        if name == "NoOpDpEvent":
            return ()
        if name == "NonPrivateDpEvent":
            return (NonPrivate(),)
        leaf = dp_noise.leaf(name, fields, share)
        if leaf is None:
            remedy = (
                "Inside a sample only Gaussian, Laplace and discrete Laplace noise has a price "
                "here."
            )
            raise refusal("noise inside a sampled event", "event", name, remedy)
        return () if isinstance(leaf, NoOp) else (leaf,)

    def _require_replaced(self, name: str, why: str) -> None:
        if self.own != "replace-one":
            raise refusal(
                "'replace-one' for this event",
                "neighbours",
                self.relation,
                f"{name} under add-remove: {why}.",
            )


def described(given: object) -> tuple[str, Mapping[str, Any]]:
    """The class and the fields of a DpEvent, of its named tuple, or of that as a JSON object."""
    kind = type(given)
    if isinstance(given, Mapping) and isinstance(given.get("class_name"), str):
        fields = {
            name: value
            for name, value in given.items()
            if name not in ("class_name", "module_name")
        }
        return given["class_name"], fields
    if isinstance(getattr(given, "class_name", None), str) and hasattr(given, "_fields"):
        return given.class_name, {name: getattr(given, name) for name in given._fields[2:]}  # type: ignore[attr-defined]
    own = getattr(kind, "__attrs_attrs__", None)
    if own is None or not kind.__module__.startswith("dp_accounting."):
        remedy = (
            "Pass an event of dp_accounting: accountant.ledger's, or what jax_privacy's dp_event "
            "says."
        )
        raise refusal("a DpEvent", "event", given, remedy)
    return kind.__name__, {field.name: getattr(given, field.name) for field in own}


def _listed(values: object, name: str) -> Sequence[object]:
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise refusal("a list of events", name, values, "Pass ComposedDpEvent([...]).")
    return values


def _described(given: object, depth: int) -> tuple[str, Mapping[str, Any]]:
    """The name and the fields of an event, if it does not lie too deep."""
    if depth > DEEPEST:
        remedy = "Put them beside each other, in one ComposedDpEvent."
        raise refusal(f"at most {DEEPEST} levels", "event", "more", remedy)
    return described(given)
