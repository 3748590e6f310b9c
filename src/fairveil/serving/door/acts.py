"""What a request to a run does: it asks the holder's curator, which checks, prices and refuses as
it does at home.

Guarantees (tests/serving/test_serving_runs.py, tests/serving/test_serving_hostile.py):
1. A request reaches the curator through the catalogue alone; what is not in it is refused before a
   row is read.
2. The length of a reply depends on the question and on public facts, never on a row.
3. Words of the analyst in a statement are marked as the analyst's. Names of groups are the
   schema's; whether their shares were fixed is read off the plan that was reserved.
4. Every act says which method a token's scope must have for it, and none is done before that was
   asked.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..._json import Node
from ...core.events import Event
from ...core.noise import NoiseSource
from ...curator import FULL, Attached, AttachedCodes, Curator, Full, Part, Poisson
from ...errors import InputError
from ...estimators.tailored import group_names
from ...facts import Cells
from ...privacy.accounting.by_group import holds
from ...statement import signing
from ...statement.document import NamedGroups
from ..wire.catalogue import MOST_MEASUREMENTS, MOST_NUMBERS, Reading, measurement_of, question_of
from ..wire.messages import Message, Packing, packed
from .attaching import attached, rule_of
from .data_sets import DataSet
from .opening import line
from .refusals import FORBIDDEN, Refusal
from .tokens import Token, require_method

STATEFUL = ("attach", "rescale")
"""Acts that are done again when a run is taken up: they release nothing, and later questions depend
on them."""
STATEMENT = "statement"
COUNTED = ("row count", "cell counts", "codes", "decisions", "shifted decisions")
"""Kinds of the catalogue that a scope of counts alone may ask."""
MOST_HANDLES = 64
MOST_SENTENCES = 40
SAID = "said by the analyst: "


@dataclass(frozen=True, eq=False)
class Doing:
    """One request, ready to be done."""

    curator: Curator
    dataset: DataSet
    plan: Event
    handles: dict[int, Attached | AttachedCodes]
    message: Message
    token: Token | None
    signer: Any
    publish: Callable[[str], None]
    chance: list[np.random.Generator] = field(default_factory=list)

    def do(self, name: str) -> bytes:
        """The reply, where the token's scope has the act's method; no token: it is done again."""
        act = ACTS[name]
        if self.token is not None:
            require_method(self.token, act.method(self.node))
        return act.do(self)

    @property
    def node(self) -> Node:
        return self.message.content

    @property
    def reading(self) -> Reading:
        return Reading(self.message, self.curator.layout, self.handles)

    def ask(self) -> bytes:
        """Joint noisy answers."""
        node = self.node.only(("asks", "batch", "purpose"))
        listed = node["asks"].list()
        if not 0 < len(listed) <= MOST_MEASUREMENTS:
            node["asks"].refuse(f"1 to {MOST_MEASUREMENTS} questions", len(listed))
        measurements = [measurement_of(one, self.reading) for one in listed]
        numbers = sum(
            measurement.question.models
            * int(np.prod(measurement.question.shape(self.curator.layout)))
            for measurement in measurements
        )
        if numbers > MOST_NUMBERS:
            node["asks"].refuse(f"at most {MOST_NUMBERS} numbers in one answer", numbers)
        answers = self.curator.answer(
            measurements, batch_of(node["batch"]), purpose=line(node["purpose"])
        )
        packing = Packing()
        return packing.packed({"answers": [packing.put(answer) for answer in answers]})

    def choose(self) -> bytes:
        """The exponential mechanism, by costs or weights."""
        node = self.node.only(("questions", "epsilon", "cell_weights", "costs", "purpose"))
        questions = [
            question_of(one, self.reading) for one in node["questions"].list()[:MOST_MEASUREMENTS]
        ]
        costs = (
            None
            if node["costs"].is_null
            else np.asarray(self.message.array(node["costs"]), np.float64)
        )
        weights = (
            None
            if node["cell_weights"].is_null
            else self.message.array(node["cell_weights"]).ravel().tolist()
        )
        epsilon = node["epsilon"].number()
        index = self.curator.choose(
            questions, epsilon, cell_weights=weights, costs=costs, purpose=line(node["purpose"])
        )
        return packed({"index": {"array": 0}}, [np.array([index], np.int64)])

    def attach(self) -> bytes:
        """A finished model of the analyst's, beside the rows."""
        if len(self.handles) >= MOST_HANDLES:
            remedy = "Open another run."
            raise InputError.expected(
                f"at most {MOST_HANDLES} models", of="attach", got=len(self.handles), remedy=remedy
            )
        rule = rule_of(self.node, self.message, self.curator.layout, self._generator)
        kind = self.node["handle"].one_of(("codes", "decisions", "probabilities"))
        number = len(self.handles)
        self.handles[number] = attached(self.curator, rule, kind)
        return packed({"handle": number})

    def rescale(self) -> bytes:
        """New units of the numbers, made of what was released."""
        node = self.node.only(("scale", "shift"))
        self.curator.rescale(self.message.array(node["scale"]), self.message.array(node["shift"]))
        return packed({"rescaled": True})

    def table(self) -> bytes:
        """Features and labels, where the holder serves them and they are public."""
        if not self.dataset.facts()["features_served"]:
            raise Refusal(
                *FORBIDDEN,
                of="the table of features",
                got="a data set whose features are not served",
            )
        node = self.node.only(("most",))
        found = self.curator.public_table(
            None, most=min(node["most"].whole(at_least=1), MOST_NUMBERS)
        )
        packing = Packing()
        parts = {
            "features": packing.put(found.features),
            "labels": packing.put(found.labels),
            "weights": packing.put(found.weights),
        }
        return packing.packed({**parts, "step": found.step})

    def statement(self) -> bytes:
        """What was released, at what price, signed."""
        node = self.node.only(("not_covered", "tuning", "earlier_releases", "groups"))
        said = [f"{SAID}{line_of(one)}" for one in node["not_covered"].list()[:MOST_SENTENCES]]
        tuning, earlier = (
            None if node[name].is_null else f"{SAID}{line_of(node[name])}"
            for name in ("tuning", "earlier_releases")
        )
        groups = []
        for one in node["groups"].list()[:64]:
            named, sentences = self._groups(one)
            groups.append(named)
            said += sentences
        text = self.curator.statement(
            not_covered=said, tuning=tuning, earlier_releases=earlier, groups=groups
        ).to_json()
        self.publish(text)
        signature = (
            None if self.signer is None else signing.signed_text(text, self.signer).to_json()
        )
        return packed(
            {
                "statement": json.loads(text),
                "signature": None if signature is None else json.loads(signature),
            }
        )

    def finish(self) -> bytes:
        """The plan was done."""
        self.curator.finish()
        return packed({"finished": True})

    def _groups(self, node: Node) -> tuple[NamedGroups, list[str]]:
        """Groups whose own prices are told, and what of these is the analyst's word."""
        node.only(("column", "limits"))
        column, listed = node["column"].whole(), node["limits"].list()
        limits = [None if one.is_null else one.number() for one in listed]
        layout = self.curator.layout
        if not layout.sensitive:
            node.refuse("no groups: these rows have no sensitive columns", "some")
        cells = Cells(layout.sensitive, "marginal", layout.sensitive_names)
        ends = np.cumsum(cells.sizes).tolist()
        if column < len(ends) and len(limits) == cells.sizes[column]:
            names = group_names(cells.keys)[ends[column] - cells.sizes[column] : ends[column]]
        elif column == 0 and len(limits) == (product := replace(cells, mode="product")).count:
            names = group_names(product.keys)
        else:
            node.refuse(f"a sensitive column and its groups: {list(cells.sizes)}", len(limits))
        count = len(names)
        is_planned = holds(self.plan, column, count)
        fixed = is_planned or not any(
            holds(event, column, count) for event in self.curator.log.events
        )
        said = [
            f"{SAID}{name} was to have at most epsilon {limit:g}"
            for name, limit in zip(names, limits, strict=True)
            if limit is not None
        ]
        if not fixed:
            shares = "shares were made once, before any answer by these groups"
            said.append(f"{SAID}{shares}: {', '.join(names)[:800]}")
        return NamedGroups(tuple(names), column, fixed), said

    def _generator(self) -> np.random.Generator:
        if not self.chance:
            self.chance.append(NoiseSource.secure().stream("prediction").generator())
        return self.chance[0]


def batch_of(node: Node) -> Full | Poisson | Part:
    """Which rows are asked."""
    kind = node["kind"].one_of(("full", "poisson", "part"))
    if kind == "full":
        node.only(("kind",))
        return FULL
    if kind == "poisson":
        return Poisson(node.only(("kind", "rate"))["rate"].number())
    node.only(("kind", "number", "parts"))
    return Part(node["number"].whole(), node["parts"].whole(at_least=1))


def line_of(node: Node) -> str:
    """A sentence for a statement."""
    text = node.text()
    if not text.strip() or len(text) > 1000 or not text.isprintable():
        node.refuse("a printable sentence of at most 1000 letters", f"{len(text)} letters")
    return text


def _counts(node: Node) -> str:
    return "counts"


def _models(node: Node) -> str:
    return "models"


def _of_asks(node: Node) -> str:
    kinds = [one["question"]["kind"].value for one in node["asks"].list()]
    return "counts" if all(kind in COUNTED for kind in kinds) else "models"


@dataclass(frozen=True)
class Act:
    """What a request may do. `method`: of its content, the one that the scope must have."""

    do: Callable[[Doing], bytes]
    method: Callable[[Node], str]


ACTS = {
    "ask": Act(Doing.ask, _of_asks),
    "choose": Act(Doing.choose, _models),
    "attach": Act(Doing.attach, _counts),
    "rescale": Act(Doing.rescale, _models),
    "table": Act(Doing.table, _models),
    "finish": Act(Doing.finish, _counts),
    STATEMENT: Act(Doing.statement, _counts),
}
