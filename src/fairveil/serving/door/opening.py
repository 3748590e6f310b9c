"""What a run asks for when it is opened: a promise, the whole plan, and how the rows are to be
coded."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from itertools import islice

from ..._json import Node
from ...core.cost import price
from ...core.events import Event, from_json_dict
from ...core.inventory import counted
from ...core.noise import NoiseSource
from ...core.promise import Promise
from ...curator.refusals import require_features_apart
from ...errors import InputError, LedgerError
from ..wire.messages import Message
from .data_sets import DataSet, View
from .divisions import root_of
from .holder import Limits
from .refusals import FORBIDDEN, Refusal

FIELDS = (
    "dataset",
    "promise",
    "plan",
    "view",
    "sources",
    "seeds",
    "public_rows",
    "stated_clips",
    "purpose",
)
MOST_WORDS = 200


@dataclass(frozen=True, eq=False)
class Opened:
    """A run as it was asked for, checked."""

    dataset: DataSet
    promise: Promise
    plan: Event
    view: View
    sources: int
    seeds: tuple[bytes, ...] | None
    public_rows: int | None
    stated_clips: tuple[float, ...] | None
    purpose: str

    @property
    def ledger_epsilon(self) -> float:
        """What the plan costs at the ledger's own delta."""
        delta = self.dataset.ledger.promise.delta
        return price(self.plan, delta, self.promise.neighbours).epsilon

    @staticmethod
    def new_id() -> str:
        """A name that nobody guesses."""
        return secrets.token_hex(16)


def opening_of(message: Message, dataset: DataSet, limits: Limits) -> Opened:
    """Read and check what was asked for."""
    node = message.content.only(FIELDS)
    promise = Promise.from_dict(node["promise"].mapping())
    if not promise.is_private:
        raise LedgerError.expected(
            "a finite epsilon", of="promise", got="inf", remedy="Nothing is served without privacy."
        )
    _require_unit(promise, dataset)
    _require_delta(promise, dataset)
    if node["plan"].is_null:
        raise InputError.expected(
            "a plan",
            of="run",
            got=None,
            remedy="A run through the door reserves all of its plan first.",
        )
    plan = from_json_dict(node["plan"].mapping())
    _require_small(plan, limits, node)
    sources = node["sources"].whole(at_least=1, at_most=limits.sources)
    seeds = None if node["seeds"].is_null else tuple(root_of(one) for one in node["seeds"].list())
    if seeds is not None and not dataset.served.seeded:
        raise Refusal(
            *FORBIDDEN,
            of="random_state",
            got="a seed; this holder's noise is secure: leave random_state=None",
        )
    if seeds is not None and len(seeds) != sources:
        node["seeds"].refuse(f"{sources} seeds, one a source", len(seeds))
    rows = None if node["public_rows"].is_null else node["public_rows"].whole(at_least=1)
    clips = None if node["stated_clips"].is_null else node["stated_clips"].numbers()[:64]
    view = View.of(node["view"])
    # says what is wrong with it
    require_features_apart(dataset.layout_of(view), promise.protects)
    return Opened(dataset, promise, plan, view, sources, seeds, rows, clips, line(node["purpose"]))


def sources_of(asked: Opened) -> list[NoiseSource]:
    """Noise: secure, or of the seeds that a test brought."""
    if asked.seeds is None:
        return [NoiseSource.secure() for _ in range(asked.sources)]
    return [NoiseSource(root, secure=False) for root in asked.seeds]


def line(node: Node) -> str:
    """A short line of words that is safe to be written down and shown."""
    text = node.text()
    if len(text) > MOST_WORDS or not (text == "" or text.isprintable()):
        node.refuse(f"a printable line of at most {MOST_WORDS} letters", f"{len(text)} letters")
    return text


def _require_small(plan: Event, limits: Limits, node: Node) -> None:
    """Pricing takes time by the number of different events."""
    if sum(1 for _ in islice(counted(plan), limits.plan_events + 1)) > limits.plan_events:
        node["plan"].refuse(f"at most {limits.plan_events} different events", "more")


def _require_delta(promise: Promise, dataset: DataSet) -> None:
    """A guarantee of a larger delta says less than the ledger's, whatever its epsilon."""
    most = dataset.ledger.promise.delta
    if promise.delta > most:
        remedy = f"Pass delta={most:g}, the ledger's, or a smaller one."
        raise LedgerError.expected(
            f"a delta of at most {most:g}", of="promise", got=promise.delta, remedy=remedy
        )


def _require_unit(promise: Promise, dataset: DataSet) -> None:
    """Who is protected is the holder's to say: rows, or the persons whom the schema's unit tells
    apart."""
    own, asked = dataset.schema.unit, None if promise.unit is None else promise.unit.name
    if asked != own:
        expected = (
            "a guarantee for rows"
            if own is None
            else f"a guarantee for persons, identified by {own!r}"
        )
        remedy = (
            "Leave unit=None: this data set has one row a person."
            if own is None
            else f"Pass unit={own!r}."
        )
        got = "rows" if asked is None else f"persons by {asked!r}"
        raise InputError.expected(expected, of="promise", got=got, remedy=remedy, quote=False)
