"""Runs: opened by an analyst, asked, and settled. The holder's curator checks, prices and answers, as
it does beside the rows; here is who may ask it, once, and what is written down.

A run reserves its whole plan in the data set's ledger before it is asked anything. Each request has
a key: a repeated one gets the reply that was written down, and nothing is drawn or charged again
(theory.md#repeats). A run has a lock of its own, and no other lock is held while anything is priced,
read, reserved or answered.

Guarantees (tests/serving/test_serving_runs.py, tests/serving/test_serving_crashes.py):
1. No reply leaves before it and its release are written; one key has one reply, also after the
   server was killed. After its machine was started anew, when some may be missing, an open run is
   over, and charged whole.
2. A run that ends before its plan did, by its analyst, by the holder or by the clock, is charged
   what it released; one whose answer failed inside is charged whole. What it held in memory and on
   the disk is free then.
3. A run is its token's: others are told what they are told of a run that is not there.
4. All answers of a run are of the same rows, in the same order.
5. A request reaches the curator through the catalogue alone. Every act says which method a token's
   scope must have, and none is done before that was asked.
6. Words of the analyst in a statement are marked as the analyst's. Names of groups are the schema's;
   whether their shares were fixed is read off the plan that was reserved.
7. Which columns a code depends on is found from its table; what the analyst claims is not asked.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import secrets
import sqlite3
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .._json import Node
from ..core.events import Event, compose, from_json_dict
from ..core.inventory import counted
from ..core.noise import NoiseSource
from ..core.promise import Promise
from ..curator import (
    FULL,
    Attached,
    AttachedCodes,
    Block,
    Curator,
    Full,
    Journal,
    LogEntry,
    Part,
    Poisson,
)
from ..curator.attached import MOST_CODES, RowFunction, rehearse
from ..curator.elsewhere import columns_of
from ..curator.journal import SITTING, Written
from ..errors import DoorError, FairveilError, InputError, LedgerAway, LedgerError
from ..estimators.fitting import COINS
from ..estimators.tailored import group_names
from ..facts import Cells, RowBlock, RowLayout
from ..ledger import Ledger, Spend
from ..methods import score_bins
from ..models import LinearModel, MixtureModel
from ..models.files import ARRAYS_FILE, MODEL_FILE, from_files
from ..statement import groups as of_groups
from ..statement import signing
from ..statement.check import event as plain_event
from ..statement.document import NamedGroups, PublicFact, StatedBound
from .datasets import DataSet, View
from .holder import Holder, Limits
from .pricing import Pricer
from .records import (
    DAY,
    OPEN,
    OPENING,
    SETTLING,
    STOP,
    Records,
    Reply,
    RunRecord,
    Token,
    Tokens,
    require_same,
)
from .refusals import Refusal
from .wire import (
    MESSAGE,
    MOST_NUMBERS,
    Message,
    Packing,
    Reading,
    cells_of,
    measurement_of,
    packed,
    question_of,
    unpacked,
)

PASSPHRASE_VARIABLE = "FAIRVEIL_KEY_PASSPHRASE"
FINISHED, WHOLE, NEVER_BEGAN = "finished", ", charged whole", "never began"
OPENED_WITH = (
    *("dataset", "promise", "plan", "view", "sources"),
    *("seeds", "public_rows", "stated_clips", "purpose"),
)
MOST_MEASUREMENTS, MOST_HANDLES, MOST_SENTENCES, MOST_TABLE = 256, 64, 40, 1 << 20
MOST_FINISHED = 16
"""Curators that are kept without codes, for a statement that mostly comes next."""
COUNTED = ("row count", "cell counts", "codes", "decisions", "shifted decisions")
"""Kinds of the catalogue that a scope of counts alone may ask."""
SAID = "said by the analyst: "
SERVED = "a curator behind a door; it read the rows by this data set's schema alone"


def digest_of(*parts: bytes) -> bytes:
    """Of a request: what tells a repeated one from another under the same key."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.digest()


def line_of(node: Node, most: int = 200, *, empty: bool = True) -> str:
    """A line of words that is safe to be written down and shown."""
    text = node.text()
    if len(text) > most or not (text.isprintable() and (empty or text.strip())):
        node.refuse(f"a printable line of at most {most} letters", f"{len(text)} letters")
    return text


def root_of(node: Node) -> bytes:
    """The root of a seeded source, as a test brings it."""
    try:
        root = bytes.fromhex(node.text())
    except ValueError:
        root = b""
    if len(root) != 32:
        node.refuse("64 hexadecimal digits", "others")
    return root


# -- opening ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Opening:
    """What a run asks for when it is opened: a guarantee, the whole plan, and a view of the rows."""

    dataset: DataSet
    promise: Promise
    plan: Event
    view: View
    sources: int
    seeds: tuple[bytes, ...] | None
    public_rows: int | None
    stated_clips: tuple[float, ...] | None
    purpose: str
    values: dict[str, Any]

    @staticmethod
    def of(node: Node, dataset: DataSet, limits: Limits) -> Opening:
        """Read what was asked for, and check what no curator checks."""
        node.only(OPENED_WITH)
        promise = Promise.from_dict(node["promise"].mapping())
        if not promise.is_private:
            remedy = "Nothing is served without privacy."
            raise LedgerError.expected("a finite epsilon", of="promise", got="inf", remedy=remedy)
        most = dataset.promise.delta
        if promise.delta > most:  # says less than the ledger's, whatever its epsilon
            remedy = f"Pass delta={most:g}, the ledger's, or a smaller one."
            raise LedgerError.expected(
                f"a delta of at most {most:g}", of="promise", got=promise.delta, remedy=remedy
            )
        if node["plan"].is_null:
            remedy = "A run of a server reserves all of its plan first."
            raise InputError.expected("a plan", of="run", got=None, remedy=remedy)
        plan = from_json_dict(node["plan"].mapping())
        if sum(1 for _ in islice(counted(plan), limits.plan_events + 1)) > limits.plan_events:
            node["plan"].refuse(f"at most {limits.plan_events} different events", "more")
        sources = node["sources"].whole(at_least=1, at_most=limits.sources)
        seeds = None if node["seeds"].is_null else tuple(map(root_of, node["seeds"].list(sources)))
        if seeds is not None and not dataset.served.seeded:
            raise Refusal("forbidden", got="random_state: a seed, where noise is secure")
        rows = None if node["public_rows"].is_null else node["public_rows"].whole(at_least=1)
        clips = None if node["stated_clips"].is_null else node["stated_clips"].numbers()[:64]
        view, purpose = View.of(node["view"]), line_of(node["purpose"])
        dataset.layout_of(view)  # says what is wrong with it
        values: dict[str, Any] = node.mapping()
        told = (dataset, promise, plan, view, sources, seeds, rows, clips, purpose, values)
        return Opening(*told)

    @property
    def deltas(self) -> tuple[float, float]:
        """Those of which a price matters: the guarantee's own, and the ledger's."""
        return self.promise.delta, self.dataset.promise.delta

    def curator(self, id: str, who: str, journal: Journal) -> Curator:
        """The holder's, begun or behind its last reply."""
        rows, told = self.dataset.rows_of(self.view), self.public_rows
        facts = [PublicFact("served by", SERVED, "schema"), *self.dataset.facts_of(self.view)]
        if told is not None and told != self.dataset.schema.rows:
            facts.append(PublicFact("number of rows", f"{SAID}{told}", "argument"))
        if self.seeds is None:
            noise = [NoiseSource.secure() for _ in range(self.sources)]
        else:
            noise = [NoiseSource(root, secure=False) for root in self.seeds]
        return Curator(
            rows,
            self.promise,
            plan=self.plan,
            noise=noise,
            public_rows=told,
            facts=facts,
            earlier=journal,
            ledger=self.dataset.ledger,
            purpose=f"run {id}: {who}: {self.purpose}",
            stated_clips=self.stated_clips,
            one_group=self.view.one_group,
        )


class RunJournal(Journal):
    """The journal of one run, in the records: an entry waits until it is written together with its
    reply, before that leaves. A server that is killed in between has handed nothing out, and asks
    again.

    The number of a sitting rises before the ledger is told: a server killed in between can go on,
    and a copy of older records cannot.
    """

    def __init__(self, records: Records, run: RunRecord) -> None:
        self.path = Path(run.id)
        self._records, self._run, self._file, self._failed = records, run.id, None, False
        self.keeps_answers = False  # replies are in the records, with their releases
        self.pending: list[LogEntry] = []
        self.stated: list[StatedBound] = []
        self.marked: list[str] = []
        self.look_again()

    def look_again(self) -> None:
        """Read what is written now."""
        found = self._records.run(self._run)
        assert found is not None
        self._written = written = Written(secure=bool(found.secure), sitting=found.sitting)
        if not found.begun:
            return
        written.header = {}
        written.entries = self._records.entries(self._run)
        bounds = self._records.notes(self._run, "bound")
        written.bounds = [StatedBound(**json.loads(words)) for words in bounds]
        written.marks = set(self._records.notes(self._run, "mark"))

    def begin(self, *_: object, secure: bool, agreed: Callable[[int], None] | None = None) -> int:
        """Go on, or begin. What is gone on with is the run's own opening, so nothing can differ."""
        self.look_again()
        written, sitting = self._written, 0 if self.is_new else self._written.sitting + 1
        if sitting:
            self._records.put(self._run, sitting=sitting)
        if agreed is not None:
            # the number of the sitting is on the disk first: noise streams of two sittings differ
            agreed(sitting)
        written.secure = written.secure and secure
        written.header = {}
        self._records.put(self._run, begun=1, secure=int(written.secure), sitting=sitting)
        written.sitting = sitting
        return sitting * SITTING

    def __call__(self, entry: LogEntry) -> None:
        """The entry waits for its reply."""
        self.pending.append(entry)
        self._written.entries.append(entry)

    def state(self, bound: StatedBound) -> None:
        """A sensitivity waits for the reply."""
        self.stated.append(bound)
        self._written.bounds.append(bound)

    def mark(self, name: str, *, sync: bool = False) -> None:
        """A mark waits for the reply; with `sync` it is written now."""
        if name in self._written.marks:
            return
        self._written.marks.add(name)
        if sync:
            self._records.note(self._run, (), (name,))
        else:
            self.marked.append(name)

    def mark_ledger(self, dataset: str, spend: str) -> None:
        """By which spend the run is charged is written now."""
        super().mark_ledger(dataset, spend)
        self._records.put(self._run, spend=spend)

    def taken(self) -> tuple[list[LogEntry], list[StatedBound], list[str]]:
        """What waited, which the caller writes now."""
        found = self.pending, self.stated, self.marked
        self.pending, self.stated, self.marked = [], [], []
        return found

    def close(self) -> None:
        """Nothing is held."""


@dataclass(eq=False, repr=False)
class Run:
    """A run that is held in memory, and the lock that has one request at a time. None: its curator
    is still to be taken up."""

    id: str
    lock: Any = field(default_factory=threading.RLock)
    opening: Opening | None = None
    curator: Curator | None = None
    journal: RunJournal | None = None
    handles: dict[int, Attached | AttachedCodes] = field(default_factory=dict)

    @property
    def has_failed(self) -> bool:
        """Whether an answer was admitted and did not come."""
        return self.curator is not None and self.curator.has_failed


# -- what a request does ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Doing:
    """One request to a run, ready to be done. `room`: a refusal where a reply of so many bytes would
    be one too many; `code`: the same of one more attached model."""

    opening: Opening
    curator: Curator
    handles: dict[int, Attached | AttachedCodes]
    message: Message
    signer: Any = None
    publish: Callable[[str], None] = lambda text: None
    room: Callable[[int], None] = lambda size: None
    code: Callable[[], None] = lambda: None

    @property
    def node(self) -> Node:
        """What was sent."""
        return self.message.content

    @property
    def reading(self) -> Reading:
        """What its questions are read with."""
        return Reading(self.message, self.curator.layout, self.handles)

    def ask(self) -> bytes:
        """Joint noisy answers."""
        node = self.node.only(("asks", "batch", "purpose"))
        listed, layout = node["asks"].list(), self.curator.layout
        if not 0 < len(listed) <= MOST_MEASUREMENTS:
            node["asks"].refuse(f"1 to {MOST_MEASUREMENTS} questions", len(listed))
        asked = [measurement_of(one, self.reading) for one in listed]
        sizes = (one.question.models * int(np.prod(one.question.shape(layout))) for one in asked)
        numbers = sum(sizes)
        if numbers > MOST_NUMBERS:
            node["asks"].refuse(f"at most {MOST_NUMBERS} numbers in one answer", numbers)
        self.room(8 * numbers)
        answers = self.curator.answer(
            asked, batch_of(node["batch"]), purpose=line_of(node["purpose"])
        )
        packing = Packing()
        return packing.packed({"answers": [packing.put(answer) for answer in answers]})

    def choose(self) -> bytes:
        """The exponential mechanism, by costs or weights."""
        node = self.node.only(("questions", "epsilon", "cell_weights", "costs", "purpose"))
        listed = node["questions"].list()[:MOST_MEASUREMENTS]
        costs, weights = (
            None if node[name].is_null else np.asarray(self.message.array(node[name]), np.float64)
            for name in ("costs", "cell_weights")
        )
        index = self.curator.choose(
            [question_of(one, self.reading) for one in listed],
            node["epsilon"].number(),
            cell_weights=None if weights is None else weights.ravel().tolist(),
            costs=costs,
            purpose=line_of(node["purpose"]),
        )
        return packed({"index": {"array": 0}}, [np.array([index], np.int64)])

    def attach(self) -> bytes:
        """A finished model of the analyst's, beside the rows."""
        if len(self.handles) >= MOST_HANDLES:
            expected, remedy = f"at most {MOST_HANDLES} models", "Open another run."
            got = len(self.handles)
            raise InputError.expected(expected, of="attach", got=got, remedy=remedy)
        self.code()
        rule = Rule.of(self.node, self.message, self.curator.layout)
        kind = self.node["handle"].one_of(("codes", "decisions", "probabilities"))
        self.handles[len(self.handles)] = rule.attached(self.curator, kind)
        return packed({"handle": len(self.handles) - 1})

    def rescale(self) -> bytes:
        """New units of the numbers, made of what was released."""
        node = self.node.only(("scale", "shift"))
        self.curator.rescale(self.message.array(node["scale"]), self.message.array(node["shift"]))
        return packed({"rescaled": True})

    def table(self) -> bytes:
        """Features and labels, where the holder serves them and they are public."""
        if not self.opening.dataset.features_served:
            raise Refusal("forbidden", got="the table of features, which is not served")
        most = min(self.node.only(("most",))["most"].whole(at_least=1), MOST_NUMBERS)
        found, packing = self.curator.public_table(None, most=most), Packing()
        told = (("features", found.features), ("labels", found.labels), ("weights", found.weights))
        parts = {name: packing.put(part) for name, part in told}
        return packing.packed({**parts, "step": found.step})

    def statement(self) -> bytes:
        """What was released, at what price, signed."""
        node = self.node.only(("not_covered", "tuning", "earlier_releases", "groups"))
        sentences = node["not_covered"].list()[:MOST_SENTENCES]
        said = [f"{SAID}{line_of(one, 1000, empty=False)}" for one in sentences]
        tuning, earlier = (
            None if node[name].is_null else f"{SAID}{line_of(node[name], 1000, empty=False)}"
            for name in ("tuning", "earlier_releases")
        )
        groups = []
        for one in node["groups"].list()[:64]:
            named, words = self._groups(one)
            groups.append(named)
            said += words
        text = self.curator.statement(
            not_covered=said, tuning=tuning, earlier_releases=earlier, groups=groups
        ).to_json()
        self.publish(text)
        signed = None
        if self.signer is not None:
            signed = json.loads(signing.signed_text(text, self.signer).to_json())
        return packed({"statement": json.loads(text), "signature": signed})

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
        product = replace(cells, mode="product")
        if column < len(ends) and len(limits) == cells.sizes[column]:
            names = group_names(cells.keys)[ends[column] - cells.sizes[column] : ends[column]]
        elif column == 0 and len(limits) == product.count:
            names = group_names(product.keys)
        else:
            node.refuse(f"a sensitive column and its groups: {list(cells.sizes)}", len(limits))
        count, events = len(names), self.curator.log.events
        own = of_groups.Cells(column, count)
        planned = own.is_in(plain_event(self.opening.plan.to_dict()))
        fixed = planned or not any(own.is_in(plain_event(one.to_dict())) for one in events)
        said = [
            f"{SAID}{name} was to have at most epsilon {limit:g}"
            for name, limit in zip(names, limits, strict=True)
            if limit is not None
        ]
        if not fixed:
            shares = "shares were made once, before any answer by these groups"
            said.append(f"{SAID}{shares}: {', '.join(names)[:800]}")
        return NamedGroups(tuple(names), column, fixed), said


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


def _of_asks(node: Node) -> str:
    kinds = [one["question"]["kind"].value for one in node["asks"].list()]
    return "counts" if all(kind in COUNTED for kind in kinds) else "models"


@dataclass(frozen=True)
class Act:
    """What a request may do. `method`: the one that the scope must have for its content. `kept`: its
    reply is, for it is a release or changes the run; `again`: it is done again when a run is taken
    up, for later questions depend on it."""

    do: Callable[[Doing], bytes]
    method: Callable[[Node], str]
    kept: bool = True
    again: bool = False


CLOSE, FINISH, STATEMENT = "close", "finish", "statement"
ACTS = {
    "ask": Act(Doing.ask, _of_asks),
    "choose": Act(Doing.choose, lambda node: "models"),
    "attach": Act(Doing.attach, lambda node: "counts", again=True),
    "rescale": Act(Doing.rescale, lambda node: "models", again=True),
    "table": Act(Doing.table, lambda node: "models", kept=False),
    FINISH: Act(Doing.finish, lambda node: "counts"),
    STATEMENT: Act(Doing.statement, lambda node: "counts", kept=False),
}


@dataclass(frozen=True, eq=False)
class Rule:
    """A finished model that the analyst sends, described: how rows get their codes. The model's
    decision or bin, then what `table` (cells, labels, decisions) makes of it. It is one of the
    library's own kinds, as its files say it; no code comes with it."""

    model: Any
    edges: npt.NDArray[np.float64] | None
    cells: Cells | None
    table: npt.NDArray[np.int64] | None
    count: int
    title: str
    chance: np.random.Generator

    @staticmethod
    def of(node: Node, message: Message, layout: RowLayout) -> Rule:
        """The rule that was described, checked against the shape of the rows."""
        node.only(("model", "edges", "cells", "table", "count", "title", "handle"))
        model = None if node["model"].is_null else _model(node["model"], message, layout)
        classes = len(layout.classes or ())
        if model is not None and tuple(model.classes) != tuple(layout.classes or ()):
            wanted = f"a model of the classes {list(layout.classes or ())}"
            node["model"].refuse(wanted, list(model.classes))
        edges = None if node["edges"].is_null else score_bins.given(message.array(node["edges"]))
        if edges is not None and (classes != 2 or not isinstance(model, LinearModel)):
            wanted = "bins of the score of a linear model of two classes"
            node["edges"].refuse(wanted, type(model).__name__)
        decisions, cells = classes if edges is None else len(edges) + 1, cells_of(node["cells"])
        if cells is not None and cells.mode != "product":
            node["cells"].refuse("product groups", cells.mode)
        count = node["count"].whole(at_least=1, at_most=MOST_CODES)
        table = None
        if not node["table"].is_null:
            table = message.array(node["table"])
            groups = 1 if cells is None else cells.count
            shapes = [(groups, labels, decisions) for labels in (1, classes)]
            if table.dtype.kind not in "iu" or table.shape not in shapes or table.size > MOST_TABLE:
                got = f"{table.dtype} of shape {table.shape}"
                node["table"].refuse(f"whole numbers of shape {shapes[0]} or {shapes[1]}", got)
            if int(table.min()) < 0 or int(table.max()) >= count:
                node["table"].refuse(f"codes from 0 to {count - 1}", "others")
            table = np.asarray(table, np.int64)
        elif count < decisions:
            node["count"].refuse(f"at least {decisions} codes", count)
        chance = np.random.default_rng()
        return Rule(model, edges, cells, table, count, node["title"].text()[:200], chance)

    @property
    def columns_read(self) -> frozenset[str]:
        """What codes depend on: guarantee 7."""
        return columns_of(self.model, self.table)

    def codes(self, block: Block) -> npt.NDArray[np.intp]:
        """One a row."""
        rows = RowBlock(block.numbers, block.codes)
        if self.model is None:  # the labels themselves are counted
            decided = np.asarray(block.labels, np.intp)
        elif self.edges is not None:
            scores = self.model.decision_scores(rows)[:, 0]
            decided = np.asarray(score_bins.codes(scores, self.edges), np.intp)
        else:
            decided = np.asarray(self.model.predict_codes(rows, self.chance), np.intp)
        if self.table is None:
            return decided
        # a block shows no other column
        groups = labels = np.zeros(block.rows, np.intp)
        if self.cells is not None and "sensitive" in self.columns_read:
            groups = np.asarray(block.cells(self.cells)[0], np.intp)
        if self.table.shape[1] > 1 and "label" in self.columns_read:
            labels = np.asarray(block.labels, np.intp)
        return np.asarray(self.table[groups, labels, decided], np.intp)

    def probabilities(self, block: Block) -> npt.NDArray[np.float64]:
        """A point of the simplex a row."""
        rows = RowBlock(block.numbers, block.codes)
        return np.asarray(self.model.predict_proba(rows), np.float64)

    def attached(self, curator: Curator, handle: str) -> Attached | AttachedCodes:
        """Kept beside the rows, once it was tried on made-up ones: beside true rows its errors are
        masked, and count as code 0."""

        def column(block: Block) -> npt.NDArray[np.float64]:
            return np.asarray(self.codes(block), np.float64).reshape(block.rows, 1)

        reads, title = self.columns_read, self.title
        tried = RowFunction(column, 1, float(MOST_CODES), columns_read=reads, title=title)
        rehearse(tried, curator.layout)
        if handle == "codes":
            return curator.attach_codes(self.codes, self.count, columns_read=reads, title=title)
        if self.table is not None or self.edges is not None:
            remedy = f"Attach a model's {handle} alone."
            raise InputError.expected("no table and no edges", of=handle, got="some", remedy=remedy)
        if handle == "decisions":
            return curator.attach(self.codes, title=title)
        if self.model is None:
            remedy = "Describe the model that has them."
            raise InputError.expected("a model", of=handle, got=None, remedy=remedy)
        return curator.attach(self.probabilities, title=title)


def _model(node: Node, message: Message, layout: RowLayout) -> Any:
    node.only(("files", "arrays"))
    packed_arrays = message.array(node["arrays"])
    if packed_arrays.dtype != np.uint8 or packed_arrays.ndim != 1:
        node["arrays"].refuse("the bytes of a model's arrays", str(packed_arrays.dtype))
    files = {MODEL_FILE: node["files"].text().encode(), ARRAYS_FILE: packed_arrays.tobytes()}
    model = from_files(files)
    for part in model.models if isinstance(model, MixtureModel) else (model,):
        if not isinstance(part, LinearModel):
            node.refuse("a linear or additive model, or a mixture of these", type(part).__name__)
        if (part.numbers, tuple(part.code_sizes)) != (layout.numbers, tuple(layout.code_sizes)):
            wanted = f"a model of {layout.numbers} numbers and codes of {list(layout.code_sizes)}"
            node.refuse(wanted, f"{part.numbers} numbers and codes of {list(part.code_sizes)}")
    return model


# -- how runs end ----------------------------------------------------------------------------------


def settle(records: Records, run: RunRecord, ledger: Ledger) -> None:
    """Charge in the ledger what the records say that a run released, and give the rest back; all of
    it, where an answer failed. What was settled before stays."""
    if run.spend is None:
        # it died before it wrote down by which spend, and asked nothing by it
        for line in ledger.history():
            if line.kind == "reserved" and line.purpose.startswith(f"run {run.id}:"):
                now = ledger.standing(line.spend)
                if now.is_open:
                    Spend(ledger, now.reserved, now.sitting).refund()
        return
    now = ledger.standing(run.spend)
    if not now.is_open:
        return
    handle, entries = Spend(ledger, now.reserved, now.sitting), records.entries(run.id)
    if run.how.endswith(WHOLE):
        handle.commit(complete=False)
    elif entries:
        done = compose(entry.event for entry in entries)
        handle.commit(done, complete=run.how == FINISHED)
    else:
        handle.refund()


class Runs:
    """All runs of a server."""

    def __init__(
        self, records: Records, datasets: dict[str, DataSet], limits: Limits, signer: Any = None
    ) -> None:
        self.records, self.datasets, self.limits, self.signer = records, datasets, limits, signer
        self._names = Tokens(records)
        self._held: dict[str, Run] = {}
        self._finished: OrderedDict[str, Run] = OrderedDict()  # for their statements
        self._lock = threading.Lock()  # of these mappings alone

    # -- opening -----------------------------------------------------------------------------------

    def seen(self, token: Token, name: str) -> DataSet:
        """A data set that a token may ask."""
        found = self.datasets.get(name)
        if found is None or not token.may_see(name) or token.role == "auditor":
            raise Refusal("not-found")
        self._require_ledger(found)
        return found

    @staticmethod
    def _require_ledger(dataset: DataSet | None) -> None:
        if dataset is not None and dataset.lacks is not None:
            raise Refusal("ledger-away", kind="LedgerAway", detail=f"it lacks {dataset.lacks}")

    def known(self, token: Token, key: str, body: bytes) -> bytes | None:
        """The reply of a run that this key opened before."""
        found = self.records.run_of_key(token.id, key)
        if found is not None and found.digest != digest_of(b"open", body):
            raise Refusal("key-reused")
        if found is not None and found.state == OPENING:
            if found.id in self._held:
                raise Refusal("busy")
            self.end(found.id, NEVER_BEGAN)  # it died before it was open
            return self.known(token, key, body) if self.records.run(found.id) is None else None
        return None if found is None else packed({"run": found.id})

    def opening(self, token: Token, body: bytes, name: str | None = None) -> Opening:
        """What is asked for, before it is priced: nothing is reserved, and no row read."""
        node = unpacked(body).content
        dataset = self.seen(token, name or node["dataset"].text())
        asked = Opening.of(node, dataset, self.limits)
        if asked.view.part is not None:
            found = self.records.division(asked.view.part[0])
            if found["token"] != token.id or found["dataset"] != dataset.name:
                raise Refusal("not-found")
            require_same(found["rows"], dataset.digest)
        secure = asked.seeds is None
        dataset.ledger.require(asked.promise, secure=secure, schema=dataset.schema)
        token.require_protection(asked.promise.protects)
        return asked

    def open(
        self, token: Token, key: str, body: bytes, asked: Opening, prices: list[float]
    ) -> bytes:
        """A new run. `prices`: of its plan, at its own delta and at the ledger's."""
        dataset, id, now = asked.dataset, secrets.token_hex(16), time.time()
        a_day = token.scope.epsilon_a_day
        # what a promise says of its plan is the analyst's to choose; what the plan costs is not
        epsilon = asked.promise.epsilon if a_day is None else prices[1]
        digest, run = digest_of(b"open", body), Run(id, opening=asked)
        told = (dataset.name, dataset.digest, OPENING, "", epsilon, now, now)
        record = RunRecord(id, token.id, key, digest, *told)
        with run.lock:
            with self._lock:
                self._held[id] = run
            try:
                self.records.begin(record, json.dumps(asked.values), self.limits, a_day)
                self._take_up(run, record, token.name)
                self.records.put(id, state=OPEN)
            except BaseException as error:
                self._held.pop(id, None)
                # a refused curator has given back what it reserved
                withdrew = isinstance(error, FairveilError) and not isinstance(error, LedgerAway)
                with suppress(FairveilError, OSError):  # else the clock does
                    self._given_back(id, withdrew=withdrew)
                raise
        return packed({"run": id})

    def _take_up(self, run: Run, record: RunRecord, who: str) -> None:
        """Its curator, begun or behind its last reply; what was attached and rescaled is done
        again."""
        assert run.opening is not None
        journal = RunJournal(self.records, record)
        curator = run.opening.curator(record.id, who, journal)
        for reply in self.records.stateful(record.id):
            assert reply.request is not None
            message = unpacked(reply.request)
            ACTS[reply.act].do(Doing(run.opening, curator, run.handles, message))
        journal.taken()
        run.journal, run.curator = journal, curator

    def _given_back(self, id: str, *, withdrew: bool = False) -> None:
        """Of a run that never began: what was reserved, and all that was written."""
        record = self.records.run(id)
        if record is not None and not (withdrew and record.spend is None):
            settle(self.records, record, self.datasets[record.dataset].ledger)
        self.records.drop(id)

    def price(self, asked: Opening, prices: list[float]) -> dict[str, Any]:
        """What a plan would cost, and whether there is room: nothing is reserved."""
        fits = asked.dataset.ledger.fits(asked.plan, asked.promise)
        return {"epsilon": prices[0], "fits": fits, "balance": asked.dataset.balance()}

    def divide(self, token: Token, name: str, key: str, body: bytes) -> bytes:
        """A division of a data set in two parts by coins of the holder's; how many rows each has,
        where the number of rows is public. It releases nothing, and is its token's."""
        dataset, node = self.seen(token, name), unpacked(body).content
        node.only(("share", "seed", "coins"))
        share, coins = node["share"].number(), node["coins"].one_of(COINS)
        if not 0.0 < share < 1.0:
            expected, remedy = "a number between 0 and 1", "Take a share such as 0.3."
            raise InputError.expected(expected, of="share", got=share, remedy=remedy)
        secure = node["seed"].is_null
        if not secure and not dataset.served.seeded:
            raise Refusal("forbidden", got="random_state: a seed, where coins are secret")
        root = secrets.token_bytes(32) if secure else root_of(node["seed"])
        values = (dataset.name, dataset.digest, share, coins, root, int(secure))
        id = self.records.divide(token.id, key, digest_of(b"divide", body), values)
        whole = dataset.exact_rows
        counts = None if whole is None else [len(dataset.part((id, part))) for part in (0, 1)]
        return packed({"division": id, "rows": counts})

    # -- asking ------------------------------------------------------------------------------------

    def act(self, token: Token, id: str, act: str, key: str, body: bytes, until: float) -> bytes:
        """One request to a run: the reply that was given before, or a new one, which is written
        down first. `until`: by the monotonic clock."""
        record = self.records.run(id)
        if record is None or record.token != token.id or (act not in ACTS and act != CLOSE):
            raise Refusal("not-found")
        digest = digest_of(act.encode(), body)
        known = self._known(id, key, digest)
        if known is not None:
            return known
        if act == CLOSE:
            self.end(id, "closed by the analyst")
            return packed({"ended": True})
        if record.state != OPEN and (act != STATEMENT or record.how != FINISHED):
            raise Refusal("ended")
        self._require_ledger(self.datasets.get(record.dataset))
        message = unpacked(body)
        token.require_method(ACTS[act].method(message.content))
        if record.state != OPEN:
            return self._stated(record, token, message)
        run = self._run(id)
        if not run.lock.acquire(timeout=max(0.0, until - time.monotonic())):
            raise Refusal("busy")
        try:
            known = self._known(id, key, digest)
            if known is not None:
                return known
            # dropped while this request waited: two curators of one run would both answer
            if self._held.get(id) is not run:
                raise Refusal("busy")
            if run.curator is None:
                self._go_on(run, token.name)
            return self._done(run, record, act, key, digest, body, message)
        finally:
            run.lock.release()

    def _known(self, id: str, key: str, digest: bytes) -> bytes | None:
        found = self.records.reply(id, key)
        if found is not None and found.digest != digest:
            raise Refusal("key-reused")
        return None if found is None else found.body

    def _done(
        self,
        run: Run,
        record: RunRecord,
        act: str,
        key: str,
        digest: bytes,
        body: bytes,
        message: Message,
    ) -> bytes:
        assert run.opening is not None
        assert run.curator is not None
        assert run.journal is not None
        limits, sent = self.limits, len(body) if ACTS[act].again else 0

        def room(size: int) -> None:
            self.records.require_room(record.token, size + sent + 4096, limits.kept_bytes)

        doing = Doing(
            run.opening,
            run.curator,
            run.handles,
            message,
            self.signer,
            lambda text: self.records.put(run.id, statement=text),
            room,
            lambda: self._require_codes(record.token),
        )
        try:
            if ACTS[act].again:
                room(0)
            reply = ACTS[act].do(doing)
        except BaseException as error:
            # a release was admitted and did not come: the run is over, and charged whole
            if run.has_failed:
                self.end(run.id, f"an answer failed inside{WHOLE}")
                raise Refusal("internal", detail=type(error).__name__) from error
            if run.journal.pending or not isinstance(error, FairveilError | Refusal):
                self._held.pop(run.id, None)  # what is on the disk is what counts
            raise
        if not ACTS[act].kept:
            return reply
        kept = Reply(key, digest, act, body if ACTS[act].again else None, reply)
        over = {"state": SETTLING, "how": FINISHED} if act == FINISH else {}
        try:
            entries, bounds, marks = run.journal.taken()
            self.records.keep(run.id, kept, entries, bounds, marks, **over)
        except BaseException:
            self._held.pop(run.id, None)
            raise
        if over:
            run.handles.clear()
            with self._lock:
                self._held.pop(run.id, None)
                self._finished[run.id] = run
                while len(self._finished) > MOST_FINISHED:
                    self._finished.popitem(last=False)
            self._settle(run.id)
        return reply

    def _require_codes(self, token: str) -> None:
        """So many attached models of one token's open runs: each is as long as the table."""
        mine = [run.id for run in self.records.runs((OPEN,)) if run.token == token]
        with self._lock:
            count = sum(len(self._held[id].handles) for id in mine if id in self._held)
        if count >= self.limits.codes:
            raise Refusal("no-room")

    def _run(self, id: str) -> Run:
        with self._lock:
            return self._held.setdefault(id, Run(id))

    def _opening(self, record: RunRecord) -> Opening:
        """What a run was opened with, as it was kept."""
        text, dataset = self.records.text(record.id, "opening"), self.datasets.get(record.dataset)
        if text is None or dataset is None:
            raise Refusal("ended")
        return Opening.of(MESSAGE.of(json.loads(text)), dataset, self.limits)

    def _go_on(self, run: Run, who: str) -> None:
        """Take a run up behind its last reply, under its lock."""
        record = self.records.run(run.id)  # it may have ended since
        try:
            if record is None or record.state != OPEN or not record.begun:
                raise Refusal("ended")
            run.opening = self._opening(record)
            require_same(record.rows, run.opening.dataset.digest)
            self._take_up(run, record, who)
        except BaseException as error:
            self._held.pop(run.id, None)
            # an error that says nothing of the run: the same request goes on later
            passes = isinstance(error, LedgerAway | DoorError | Refusal)
            if isinstance(error, FairveilError) and not passes:
                self._settled(run.id, f"could not be taken up again{WHOLE}")
            raise

    def _stated(self, record: RunRecord, token: Token, message: Message) -> bytes:
        """The statement of a run that was finished, by its curator, or by one that is taken up for it
        alone."""
        with self._lock:
            found = self._finished.get(record.id)
        if found is None:
            run = Run(record.id, opening=self._opening(record))
            try:
                self._take_up(run, record, token.name)
            except FairveilError as error:
                if isinstance(error, LedgerAway | DoorError):
                    raise
                raise Refusal("ended") from error
        else:
            run = found
        assert run.opening is not None
        assert run.curator is not None
        publish = lambda text: self.records.put(run.id, statement=text)  # noqa: E731
        doing = Doing(run.opening, run.curator, run.handles, message, self.signer, publish)
        return ACTS[STATEMENT].do(doing)

    # -- ending ------------------------------------------------------------------------------------

    def end(self, id: str, how: str, wait: float | None = None) -> bool:
        """End a run for good; whether it was still open. A request on its way is waited for, and
        charged; `wait`: at most so many seconds, and then it is ended another time. None at all: a
        run that is being asked goes on."""
        run = self._run(id)
        if run.curator is not None and wait != 0.0:
            run.curator.close()  # from here nothing more is admitted
        if not run.lock.acquire(timeout=-1 if wait is None else wait):
            return False
        try:
            if run.curator is not None:
                run.curator.close()
            whole = run.has_failed and not how.endswith(WHOLE)
            return self._settled(id, f"{how}{WHOLE}" if whole else how)
        finally:
            if self._held.get(id) is run:
                self._held.pop(id, None)
            run.lock.release()

    def _settled(self, id: str, how: str) -> bool:
        record = self.records.run(id)
        if record is None or record.state not in (OPENING, OPEN):
            return False
        if how == NEVER_BEGAN:
            self._given_back(id)
            return True
        self.records.put(id, state=SETTLING, how=how)
        self._settle(id)
        return True

    def _settle(self, id: str) -> None:
        """Tell the ledger; where it cannot be told, the clock tries again, and meanwhile all of it
        is charged."""
        record = self.records.run(id)
        if record is None or record.dataset not in self.datasets:
            return
        with suppress(FairveilError, OSError):
            settle(self.records, record, self.datasets[record.dataset].ledger)
            self.records.end(id, record.how)

    # -- time --------------------------------------------------------------------------------------

    def recover(self) -> None:
        """At the start: runs that were being opened when the server died are given back; the others
        wait for their analysts. Where the machine was started anew, replies may be missing, and
        open runs are charged whole."""
        for record in self.records.runs((OPENING,)):
            self.end(record.id, NEVER_BEGAN)
        if self.records.was_rebooted:
            for record in self.records.runs((OPEN,)):
                self.end(record.id, f"the machine was started anew{WHOLE}")
        self.records.note_boot()
        for record in self.records.runs((SETTLING,)):
            self._settle(record.id)

    def sweep(self, now: float | None = None) -> int:
        """End runs that nobody asked for too long; how many."""
        now, count = time.time() if now is None else now, 0
        for record in self.records.runs((OPENING, OPEN)):
            if record.state == OPENING:
                if record.id not in self._held:
                    with suppress(FairveilError, OSError):
                        count += self.end(record.id, NEVER_BEGAN)
            elif record.how == STOP:
                count += self.end(record.id, "stopped by the holder", wait=1.0)
            elif now - record.touched > 60.0 * self.limits.run_minutes:
                count += self.end(record.id, "ended by the clock", wait=0.0)
        for record in self.records.runs((SETTLING,)):
            self._settle(record.id)
        self.records.forget(now - DAY * self.limits.keep_days)
        return count


# -- everything that a request may reach -----------------------------------------------------------


class Server:
    """One holder's records, tokens, data sets and runs, put together; the service knows HTTP alone."""

    def __init__(self, holder: Holder) -> None:
        """Rows are read and checked, the ledgers are found, and what an earlier server left half
        done is settled."""
        holder.require_certificate()
        self.holder, self.key = holder, None
        self.datasets: dict[str, DataSet] = {}
        if holder.signing_key is not None:
            phrase = os.environ.get(PASSPHRASE_VARIABLE)
            self.key = signing.private_key(holder.signing_key, phrase)
        self.records = Records(holder.folder)
        self.pricer: Pricer | None = None
        try:
            self.tokens = Tokens(self.records)
            for one in holder.datasets:
                self.datasets[one.name] = DataSet(one, self.records)
            self.runs = Runs(self.records, self.datasets, holder.limits, self.key)
            self.runs.recover()
            self.pricer = Pricer(holder.limits.pricing_seconds)
        except BaseException:
            self.close()
            raise
        self._looked = time.monotonic()
        self.trouble: str | None = None

    def close(self) -> None:
        """Let go of all files and processes. Runs stay open: their analysts go on when the server is
        up again."""
        if self.pricer is not None:
            self.pricer.close()
        self.records.close()
        for dataset in self.datasets.values():
            dataset.ledger.close()

    @property
    def fingerprint(self) -> str | None:
        """Of the key that statements are signed by."""
        return None if self.key is None else signing.fingerprint(self.key.public_key())

    def about(self) -> dict[str, Any]:
        """What anybody may know."""
        pem = None if self.key is None else signing.public_pem(self.key.public_key()).decode()
        try:
            version = importlib.metadata.version("fairveil")
        except importlib.metadata.PackageNotFoundError:
            version = "unknown"
        return {
            "service": "fairveil",
            "version": version,
            "protocol": 2,
            "holder": self.holder.name,
            "public_key": pem,
            "fingerprint": self.fingerprint,
        }

    def list(self, token: Token) -> dict[str, Any]:
        """The data sets that a token may see, with their public facts."""
        own = [one for one in self.datasets.values() if token.may_see(one.name)]
        return {"datasets": [one.facts() for one in own]}

    def facts(self, token: Token, name: str) -> dict[str, Any]:
        """One data set, and what is left of its budget."""
        found = self._seen(token, name)
        return {**found.facts(), "balance": found.balance(), "scope": token.scope.words}

    def ledger(self, token: Token, name: str) -> str:
        """All lines of a ledger: for auditors and the holder."""
        return self._seen(token, name, all=True).ledger.export()

    def statements(self, token: Token, name: str) -> dict[str, Any]:
        """Every statement of a data set's runs: for auditors and the holder."""
        dataset = self._seen(token, name, all=True)
        query = "SELECT id AS run, state, how, statement FROM runs WHERE dataset = ? ORDER BY opened DESC"
        return {"runs": [dict(row) for row in self.records.rows(query, (dataset.name,))]}

    def _seen(self, token: Token, name: str, *, all: bool = False) -> DataSet:
        if all and token.role not in ("auditor", "holder"):
            raise Refusal("forbidden", got=token.role)
        found = self.datasets.get(name)
        if found is None or not token.may_see(name):
            raise Refusal("not-found")
        return found

    def sweep(self) -> None:
        """What is done every few seconds: the clock of runs, and a look whether all answer."""
        trouble = None
        try:
            self.runs.sweep()
        except (FairveilError, OSError, sqlite3.Error) as error:
            trouble = str(error)
        for dataset in self.datasets.values():
            try:
                dataset.require_spends()
                _ = dataset.ledger.is_untouched
            except (FairveilError, OSError, sqlite3.Error) as error:
                trouble = str(error)
        self.trouble, self._looked = trouble, time.monotonic()

    @property
    def is_healthy(self) -> bool:
        """What the last look found; a look that does not end is trouble, too. It asks nobody."""
        late = time.monotonic() - self._looked > 120.0
        return self.trouble is None and not late and self.records.can_write
