"""A server: data sets, tokens, and runs that are opened by an analyst, asked, and settled. The
holder's curator checks, prices and answers, as it does beside the rows; here is who may ask it,
once, and what is written down.

A run reserves its whole plan in the data set's ledger before it is asked anything. Each request has
a key: the last one repeated gets the same reply, and nothing is drawn or charged again
(theory.md#repeats). A run has a lock of its own, and no other lock is held while anything is priced,
read, reserved or answered.

Guarantees (tests/serving/test_serving_runs.py, tests/serving/test_serving_crashes.py):
1. No reply leaves before its release is on the disk; one key has one reply, also after the server or
   its machine was started anew. Where that cannot be, the run is over, and charged whole.
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
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from .._json import Node
from ..core.attached import MOST_CODES, RowFunction, rehearse
from ..core.errors import need
from ..core.events import Event, compose, from_json_dict, to_json_dict
from ..core.mechanisms import counted
from ..core.noise import NoiseSource
from ..core.promise import Promise
from ..curator import Attached, Block, Curator, Journal
from ..data.elsewhere import DescribedRule
from ..errors import DoorError, FairveilError, LedgerAway, LedgerError, PrivacyError
from ..estimators.fitting import COINS
from ..estimators.tailored import group_names
from ..facts import Cells, RowBlock, RowLayout
from ..ledger import Ledger, Spend
from ..methods import score_bins
from ..models import LinearModel, MixtureModel
from ..models.files import ARRAYS_FILE, MODEL_FILE, from_files
from ..statement import groups as of_groups
from ..statement import signing
from ..statement.document import NamedGroups, PrivacyStatement, PublicFact
from ..statement.form import event as plain_event
from . import wire
from .datasets import DataSet
from .holder import Holder, Limits
from .pricing import Pricer
from .records import (
    DAY,
    ENDED,
    FINISHED,
    OPEN,
    OPENING,
    SETTLING,
    STOP,
    Records,
    RunRecord,
    Token,
    Tokens,
    require_same,
)
from .refusals import Refusal

PASSPHRASE_VARIABLE = "FAIRVEIL_KEY_PASSPHRASE"
WHOLE, NEVER_BEGAN = ", charged whole", "never began"
OPENED_WITH = (
    *("dataset", "promise", "plan", "view", "sources"),
    *("seeds", "public_rows", "stated_clips", "purpose"),
)
MOST_MEASUREMENTS, MOST_HANDLES, MOST_SENTENCES, MOST_TABLE = 256, 64, 40, 1 << 20
MOST_FINISHED, A_REQUEST, A_NUMBER = 16, 1024, 12
"""Curators that are kept for a statement, which mostly comes next; and bytes that are kept of a
request, and of each number of its answer."""
COUNTED = ("row count", "cell counts", "codes", "decisions", "shifted decisions")
"""Kinds of the catalogue that a scope of counts alone may ask."""
SAID = "said by the analyst: "
SERVED = "a curator behind a door; it read the rows by this data set's schema alone"


def digest_of(*parts: bytes) -> bytes:
    """Of a request: what tells a repeated one from another under the same key."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.digest()


def line_of(node: Node, most: int = 200, *, empty: bool = True) -> str:
    """A line of words that is safe to be written down and shown."""
    text = node.text()
    if len(text) > most or not (text.isprintable() and (empty or text.strip())):
        node.refuse(f"a printable line of at most {most} letters", f"{len(text)} letters")
    return text


def said_of(node: Node) -> str:
    """Words of the analyst's, marked as such: guarantee 6."""
    return f"{SAID}{line_of(node, 1000, empty=False)}"


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
    view: wire.View
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
        promise, most = Promise.from_dict(node["promise"].mapping()), dataset.promise.delta
        fix, told = "Nothing is served without privacy.", {"of": "promise", "error": LedgerError}
        need(promise.is_private, "a finite epsilon", got="inf", fix=fix, **told)  # type: ignore[arg-type]
        # a larger one says less than the ledger's, whatever its epsilon
        fix, got = f"Pass delta={most:g}, the ledger's, or a smaller one.", promise.delta
        need(got <= most, f"a delta of at most {most:g}", got=got, fix=fix, **told)  # type: ignore[arg-type]
        fix = "A run of a server reserves all of its plan first."
        need(not node["plan"].is_null, "a plan", of="run", got=None, fix=fix)
        plan = from_json_dict(node["plan"].mapping())
        if sum(1 for _ in islice(counted(plan), limits.plan_events + 1)) > limits.plan_events:
            node["plan"].refuse(f"at most {limits.plan_events} different events", "more")
        sources = node["sources"].whole(at_least=1, at_most=limits.sources)
        seeds = None if node["seeds"].is_null else tuple(map(root_of, node["seeds"].list(sources)))
        if seeds is not None and not dataset.served.seeded:
            raise Refusal("forbidden", got="random_state: a seed, where noise is secure")
        rows = None if node["public_rows"].is_null else node["public_rows"].whole(at_least=1)
        clips = None if node["stated_clips"].is_null else node["stated_clips"].numbers()[:64]
        view, purpose = wire.View.of(node["view"]), line_of(node["purpose"])
        dataset.layout_of(view)  # says what is wrong with it
        given = (sources, seeds, rows, clips, purpose, node.mapping())
        return Opening(dataset, promise, plan, view, *given)

    @property
    def deltas(self) -> tuple[float, float]:
        """Those of which a price matters: the guarantee's own, and the ledger's."""
        return self.promise.delta, self.dataset.promise.delta

    def curator(self, id: str, who: str, journal: Journal) -> Curator:
        """The holder's, begun or behind its last answer."""
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


# -- what a request does ---------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class Run:
    """A run that is held in memory, and the lock that has one request at a time. `curator`: None,
    where it is still to be taken up; `last`: key, digest and reply of the last request; `room`: a
    refusal where so many bytes more would be too many; `ends`: no request begins any more; `is_over`:
    it was finished."""

    id: str
    token: str = ""
    opening: Opening | None = None
    curator: Any = None
    handles: dict[int, Attached] = field(default_factory=dict)
    last: tuple[str, bytes, bytes] | None = None
    room: Callable[[int], None] = lambda size: None
    ends: bool = False
    is_over: bool = False
    lock: Any = field(default_factory=threading.RLock)

    def ask(self, node: Node) -> Any:
        """Joint noisy answers."""
        listed, layout = node.only(("asks", "batch", "purpose"))["asks"].list(), self.curator.layout
        if not 0 < len(listed) <= MOST_MEASUREMENTS:
            node["asks"].refuse(f"1 to {MOST_MEASUREMENTS} questions", len(listed))
        asked = [wire.measurement_of(one, layout, self.handles) for one in listed]
        sizes = (one.question.models * int(np.prod(one.question.shape(layout))) for one in asked)
        numbers = sum(sizes)
        if numbers > wire.MOST_NUMBERS:
            node["asks"].refuse(f"at most {wire.MOST_NUMBERS} numbers in one answer", numbers)
        batch, purpose = wire.batch_of(node["batch"]), line_of(node["purpose"])
        self.room(A_NUMBER * numbers)
        return {"answers": self.curator.answer(asked, batch, purpose=purpose)}

    def choose(self, node: Node) -> Any:
        """The exponential mechanism, by costs or weights."""
        node.only(("questions", "epsilon", "cell_weights", "costs", "purpose"))
        listed, layout = node["questions"].list()[:MOST_MEASUREMENTS], self.curator.layout
        costs, weights = (
            None if node[name].is_null else wire.floats_of(node[name])
            for name in ("costs", "cell_weights")
        )
        index = self.curator.choose(
            [wire.question_of(one, layout, self.handles) for one in listed],
            node["epsilon"].number(),
            cell_weights=None if weights is None else weights.ravel().tolist(),
            costs=costs,
            purpose=line_of(node["purpose"]),
        )
        return {"index": np.array([index], np.int64)}

    def attach(self, node: Node) -> Any:
        """A finished model of the analyst's, beside the rows."""
        count, fix = len(self.handles), "Open another run."
        few = count < MOST_HANDLES
        need(few, f"at most {MOST_HANDLES} models", of="attach", got=count, fix=fix)
        self.handles[count] = attached(self.curator, node)
        return {"handle": count}

    def rescale(self, node: Node) -> Any:
        """New units of the numbers, made of what was released."""
        node.only(("scale", "shift"))
        self.curator.rescale(wire.array_of(node["scale"]), wire.array_of(node["shift"]))
        return {"rescaled": True}

    def table(self, node: Node) -> Any:
        """Features and labels, where the holder serves them and they are public."""
        assert self.opening is not None
        if not self.opening.dataset.features_served:
            raise Refusal("forbidden", got="the table of features, which is not served")
        most = min(node.only(("most",))["most"].whole(at_least=1), wire.MOST_NUMBERS)
        found = self.curator.public_table(None, most=most)
        parts = {name: getattr(found, name) for name in ("features", "labels", "weights")}
        return {**parts, "step": found.step}

    def finish(self, node: Node) -> Any:
        """The plan was done."""
        self.curator.finish()
        self.is_over = True
        return {"finished": True}

    def statement(self, node: Node) -> Any:
        """What was released, at what price: its text."""
        node.only(("not_covered", "tuning", "earlier_releases", "groups"))
        said = [said_of(one) for one in node["not_covered"].list()[:MOST_SENTENCES]]
        words = {
            name: None if node[name].is_null else said_of(node[name])
            for name in ("tuning", "earlier_releases")
        }
        groups = [self._groups(one, said) for one in node["groups"].list()[:64]]
        found = PrivacyStatement.of_run(self.curator, not_covered=said, groups=groups, **words)
        return found.to_json()

    def _groups(self, node: Node, said: list[str]) -> NamedGroups:
        """Groups whose own prices are told; what of these is the analyst's word goes to `said`."""
        assert self.opening is not None
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
        said += [
            f"{SAID}{name} was to have at most epsilon {limit:g}"
            for name, limit in zip(names, limits, strict=True)
            if limit is not None
        ]
        if not fixed:
            shares = "shares were made once, before any answer by these groups"
            said.append(f"{SAID}{shares}: {', '.join(names)[:800]}")
        return NamedGroups(tuple(names), column, fixed)


def _of_asks(node: Node) -> str:
    kinds = [one["question"]["kind"].value for one in node["asks"].list()]
    return "counts" if all(kind in COUNTED for kind in kinds) else "models"


@dataclass(frozen=True)
class Act:
    """What a request may do. `method`: the one that the scope must have, or what finds it from the
    request. `kept`: the request is, for it releases something or changes the run."""

    do: Callable[[Run, Node], Any]
    method: str | Callable[[Node], str]
    kept: bool = True


CLOSE, FINISH, STATEMENT, ATTACH = "close", "finish", "statement", "attach"
ACTS = {
    "ask": Act(Run.ask, _of_asks),
    "choose": Act(Run.choose, "models"),
    ATTACH: Act(Run.attach, "counts"),
    "rescale": Act(Run.rescale, "models"),
    "table": Act(Run.table, "models", kept=False),
    FINISH: Act(Run.finish, "counts"),
    STATEMENT: Act(Run.statement, "counts", kept=False),
}


# -- models of the analyst's -----------------------------------------------------------------------


def rule_of(node: Node, layout: RowLayout) -> tuple[DescribedRule, int]:
    """How rows get their codes, checked against the shape of the rows, and how many codes there are.
    The model is one of the library's own kinds, as its files say it; no code comes with it."""
    node.only(("model", "edges", "cells", "table", "count", "title", "handle"))
    classes, model = tuple(layout.classes or ()), None
    if not node["model"].is_null:
        model = _model(node["model"], layout)
        if tuple(model.classes) != classes:
            node["model"].refuse(f"a model of the classes {list(classes)}", list(model.classes))
    edges = None if node["edges"].is_null else score_bins.given(wire.array_of(node["edges"]))
    if edges is not None and (len(classes) != 2 or not isinstance(model, LinearModel)):
        wanted = "bins of the score of a linear model of two classes"
        node["edges"].refuse(wanted, type(model).__name__)
    decisions, cells = (
        len(classes) if edges is None else len(edges) + 1,
        wire.cells_of(node["cells"]),
    )
    if cells is not None and cells.mode != "product":
        node["cells"].refuse("product groups", cells.mode)
    count, table = node["count"].whole(at_least=1, at_most=MOST_CODES), None
    if not node["table"].is_null:
        table = wire.array_of(node["table"])
        groups = 1 if cells is None else cells.count
        shapes = [(groups, labels, decisions) for labels in (1, len(classes))]
        if table.dtype.kind not in "iu" or table.shape not in shapes or table.size > MOST_TABLE:
            got = f"{table.dtype} of shape {table.shape}"
            node["table"].refuse(f"whole numbers of shape {shapes[0]} or {shapes[1]}", got)
        if int(table.min()) < 0 or int(table.max()) >= count:
            node["table"].refuse(f"codes from 0 to {count - 1}", "others")
        table = np.asarray(table, np.int64)
    elif count < decisions:
        node["count"].refuse(f"at least {decisions} codes", count)
    return DescribedRule(model, decisions, edges, cells, table), count


def attached(curator: Curator, node: Node) -> Attached:
    """A described model's decisions, bins or probabilities, kept beside the rows once it was tried
    on made-up ones: beside true rows its errors are masked, and count as code 0."""
    rule, count = rule_of(node, curator.layout)
    model, table, reads = rule.model, rule.table, rule.columns_read  # guarantee 7
    handle = node["handle"].one_of(("codes", "decisions", "probabilities"))
    title, chance = node["title"].text()[:200], np.random.default_rng()

    def codes(block: Block) -> npt.NDArray[np.intp]:
        rows = RowBlock(block.numbers, block.codes)
        if model is None:  # the labels themselves are counted
            decided = np.asarray(block.labels, np.intp)
        elif rule.edges is not None:
            scores = model.decision_scores(rows)[:, 0]
            decided = np.asarray(score_bins.codes(scores, rule.edges), np.intp)
        else:
            decided = np.asarray(model.predict_codes(rows, chance), np.intp)
        if table is None:
            return decided
        # a block shows no other column
        groups = labels = np.zeros(block.rows, np.intp)
        if rule.cells is not None and "sensitive" in reads:
            groups = np.asarray(block.cells(rule.cells)[0], np.intp)
        if table.shape[1] > 1 and "label" in reads:
            labels = np.asarray(block.labels, np.intp)
        return np.asarray(table[groups, labels, decided], np.intp)

    def column(block: Block) -> npt.NDArray[np.float64]:
        return np.asarray(codes(block), np.float64).reshape(block.rows, 1)

    def probabilities(block: Block) -> npt.NDArray[np.float64]:
        rows = RowBlock(block.numbers, block.codes)
        return np.asarray(model.predict_proba(rows), np.float64)

    tried = RowFunction(column, 1, float(MOST_CODES), columns_read=reads, title=title)
    rehearse(tried, curator.layout)
    if handle == "codes":
        return curator.attach_codes(codes, count, columns_read=reads, title=title)
    plain, fix = table is None and rule.edges is None, f"Attach a model's {handle} alone."
    need(plain, "no table and no edges", of=handle, got="some", fix=fix)
    if handle == "decisions":
        return curator.attach(codes, title=title)
    fix = "Describe the model that has them."
    need(model is not None, "a model", of=handle, got=None, fix=fix)
    return curator.attach(probabilities, title=title)


def _model(node: Node, layout: RowLayout) -> Any:
    node.only(("files", "arrays"))
    arrays = wire.array_of(node["arrays"])
    if arrays.dtype != np.uint8 or arrays.ndim != 1:
        node["arrays"].refuse("the bytes of a model's arrays", str(arrays.dtype))
    files = {MODEL_FILE: node["files"].text().encode(), ARRAYS_FILE: arrays.tobytes()}
    model = from_files(files)
    for part in model.models if isinstance(model, MixtureModel) else (model,):
        if not isinstance(part, LinearModel):
            node.refuse("a linear or additive model, or a mixture of these", type(part).__name__)
        if (part.numbers, tuple(part.code_sizes)) != (layout.numbers, tuple(layout.code_sizes)):
            wanted = f"a model of {layout.numbers} numbers and codes of {list(layout.code_sizes)}"
            node.refuse(wanted, f"{part.numbers} numbers and codes of {list(part.code_sizes)}")
    return model


# -- the server ------------------------------------------------------------------------------------


def settle(run: RunRecord, ledger: Ledger) -> None:
    """Charge in the ledger what a run released, and give the rest back; all of it, where an answer
    failed. What was settled before stays."""
    if run.spend is None:
        # it died before it wrote down by which spend, and asked nothing by it
        for line in ledger.history():
            if line.kind == "reserved" and line.purpose.startswith(f"run {run.id}:"):
                now = ledger.standing(line.spend)
                if now.is_open:
                    Spend(ledger, now.reserved, now.sitting).refund()
        return
    now = ledger.standing(run.spend)
    handle = Spend(ledger, now.reserved, now.sitting)
    if not now.is_open:
        return
    if run.how.endswith(WHOLE) or run.sitting != now.sitting:  # a copy of it went on elsewhere
        handle.commit(complete=False)
    elif run.released is not None:
        done = from_json_dict(json.loads(run.released))
        handle.commit(done, complete=run.how == FINISHED)
    else:
        handle.refund()


class Server:
    """One holder's records, tokens, data sets and runs; the service knows HTTP alone."""

    def __init__(self, holder: Holder) -> None:
        """Rows are read and checked, the ledgers are found, and what an earlier server left half
        done is settled; open runs wait for their analysts."""
        holder.require_certificate()
        self.holder, self.limits, self.key = holder, holder.limits, None
        self.datasets: dict[str, DataSet] = {}
        self._held: dict[str, Run] = {}
        self._lock = threading.Lock()  # of this mapping alone
        if holder.signing_key is not None:
            phrase = os.environ.get(PASSPHRASE_VARIABLE)
            self.key = signing.private_key(holder.signing_key, phrase)
        self.records = Records(holder.folder)
        self.pricer: Pricer | None = None
        try:
            self.tokens = Tokens(self.records)
            for one in holder.datasets:
                self.datasets[one.name] = DataSet(one, self.records)
            self._tidy()
            self.pricer = Pricer(holder.limits.pricing_seconds)
        except BaseException:
            self.close()
            raise
        self._looked, self.trouble = time.monotonic(), ""

    def close(self) -> None:
        """Let go of all files and processes. Runs stay open: their analysts go on when the server is
        up again."""
        if self.pricer is not None:
            self.pricer.close()
        for run in list(self._held.values()):
            self._drop(run)
        self.records.close()
        for dataset in self.datasets.values():
            dataset.ledger.close()

    # -- what is told ------------------------------------------------------------------------------

    @property
    def fingerprint(self) -> str | None:
        """Of the key that statements are signed by."""
        return None if self.key is None else signing.fingerprint(self.key.public_key())

    def about(self) -> dict[str, Any]:
        """What anybody may know."""
        pem, version = None, "unknown"
        if self.key is not None:
            pem = signing.public_pem(self.key.public_key()).decode()
        with suppress(importlib.metadata.PackageNotFoundError):
            version = importlib.metadata.version("fairveil")
        told = {"service": "fairveil", "version": version, "protocol": 3, "public_key": pem}
        return {**told, "holder": self.holder.name, "fingerprint": self.fingerprint}

    def listed(self, token: Token) -> dict[str, Any]:
        """The data sets that a token may see, with their public facts."""
        own = [one for one in self.datasets.values() if token.may_see(one.name)]
        return {"datasets": [one.facts() for one in own]}

    def facts(self, token: Token, name: str) -> dict[str, Any]:
        """One data set, and what is left of its budget."""
        found = self._seen(token, name, ("analyst", "auditor", "holder"))
        return {**found.facts(), "balance": found.balance(), "scope": token.scope.words}

    def ledger(self, token: Token, name: str) -> str:
        """All lines of a ledger: for auditors and the holder."""
        lines = [line.to_dict() for line in self._audited(token, name).ledger.history()]
        return json.dumps({"entries": lines}, allow_nan=False)

    def statements(self, token: Token, name: str) -> dict[str, Any]:
        """Every statement of a data set's runs: for auditors and the holder."""
        query = "SELECT id AS run, state, how, statement FROM runs WHERE dataset = ? "
        rows = self.records.rows(f"{query}ORDER BY opened DESC", self._audited(token, name).name)
        return {"runs": [dict(row) for row in rows]}

    def _audited(self, token: Token, name: str) -> DataSet:
        if token.role == "analyst":
            raise Refusal("forbidden", got=token.role)
        return self._seen(token, name, ("auditor", "holder"))

    def _seen(self, token: Token, name: str, roles: tuple[str, ...]) -> DataSet:
        found = self.datasets.get(name)
        if found is None or not token.may_see(name) or token.role not in roles:
            raise Refusal("not-found")
        return found

    def _asked(self, token: Token, name: str) -> DataSet:
        """A data set that a token may ask, and its ledger has what was spent."""
        found = self._seen(token, name, ("analyst", "holder"))
        if found.lacks is not None:
            raise Refusal("ledger-away", kind="LedgerAway", detail=f"it lacks {found.lacks}")
        return found

    # -- opening -----------------------------------------------------------------------------------

    def known(self, token: Token, key: str, body: bytes) -> bytes | None:
        """The reply of a run that this key opened before."""
        found = self.records.run_of_key(token.id, key)
        if found is not None and found.digest != digest_of(b"open", body):
            raise Refusal("key-reused")
        if found is not None and found.state == OPENING:
            if found.id in self._held:
                raise Refusal("busy")
            self.end(found.id, NEVER_BEGAN)  # it died before it was open
            return None
        return None if found is None else wire.packed({"run": found.id})

    def opening(self, token: Token, body: bytes, name: str | None = None) -> Opening:
        """What is asked for, before it is priced: nothing is reserved, and no row read."""
        node = wire.unpacked(body, most=0)
        dataset = self._asked(token, name or node["dataset"].text())
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

    def price(self, asked: Opening, prices: list[float]) -> dict[str, Any]:
        """What a plan would cost, and whether there is room: nothing is reserved."""
        fits = asked.dataset.ledger.fits(asked.plan, asked.promise)
        return {"epsilon": prices[0], "fits": fits, "balance": asked.dataset.balance()}

    def open(
        self, token: Token, key: str, body: bytes, asked: Opening, prices: list[float]
    ) -> bytes:
        """A new run. `prices`: of its plan, at its own delta and at the ledger's."""
        dataset, id, now = asked.dataset, secrets.token_hex(16), time.time()
        a_day = token.scope.epsilon_a_day
        # what a promise says of its plan is the analyst's to choose; what the plan costs is not
        epsilon = asked.promise.epsilon if a_day is None else prices[1]
        digest, run = digest_of(b"open", body), Run(id, token.id, asked)
        told = (dataset.name, dataset.digest, OPENING, "", epsilon, now, now)
        record = RunRecord(id, token.id, key, digest, *told)
        with run.lock:
            with self._lock:
                self._held[id] = run
            try:
                self.records.begin(record, json.dumps(asked.values), self.limits, a_day)
                self._curate(run, token.name, is_new=True)
                self.records.put(id, state=OPEN, spend=run.curator.journal.ledger[1])
            except BaseException as error:
                self._drop(run)
                # a refused curator has given back what it reserved
                withdrew = isinstance(error, FairveilError) and not isinstance(error, LedgerAway)
                with suppress(FairveilError, OSError):  # else the clock does
                    self._never_began(id, withdrew=withdrew)
                raise
        return wire.packed({"run": id})

    def _curate(self, run: Run, who: str, *, is_new: bool) -> None:
        assert run.opening is not None
        journal = Journal(self.records.journal(run.id))
        fix, right = "Restore it from a copy.", journal.is_new == is_new
        need(right, "its journal", of="run", got="another", fix=fix, error=PrivacyError)
        run.curator = run.opening.curator(run.id, who, journal)

    def _never_began(self, id: str, *, withdrew: bool = False) -> None:
        """What was reserved is given back, and all that was written goes."""
        record = self.records.run(id)
        if record is None:
            return
        if not withdrew or record.spend is not None:
            settle(record, self.datasets[record.dataset].ledger)
        self.records.clear(id, forgets=True)

    def divide(self, token: Token, name: str, key: str, body: bytes) -> bytes:
        """A division of a data set in two parts by coins of the holder's; how many rows each has,
        where the number of rows is public. It releases nothing, and is its token's."""
        dataset, node = self._asked(token, name), wire.unpacked(body, most=0)
        node.only(("share", "seed", "coins"))
        share, coins = node["share"].number(), node["coins"].one_of(COINS)
        fix = "Take a share such as 0.3."
        need(0.0 < share < 1.0, "a number between 0 and 1", of="share", got=share, fix=fix)
        secure = node["seed"].is_null
        if not secure and not dataset.served.seeded:
            raise Refusal("forbidden", got="random_state: a seed, where coins are secret")
        root = secrets.token_bytes(32) if secure else root_of(node["seed"])
        values = (dataset.name, dataset.digest, share, coins, root, int(secure))
        id = self.records.divide(token.id, key, digest_of(b"divide", body), values)
        whole = dataset.exact_rows
        counts = None if whole is None else [len(dataset.part((id, part))) for part in (0, 1)]
        return wire.packed({"division": id, "rows": counts})

    # -- asking ------------------------------------------------------------------------------------

    def act(self, token: Token, id: str, act: str, key: str, body: bytes, until: float) -> bytes:
        """One request to a run: the reply that was given before, or a new one. `until`: by the
        monotonic clock."""
        record = self.records.run(id)
        if record is None or record.token != token.id or (act not in ACTS and act != CLOSE):
            raise Refusal("not-found")
        if act == CLOSE:
            self.end(id, "closed by the analyst")
            return wire.packed({"ended": True})
        self._require_live(record)
        self._asked(token, record.dataset)
        node, method = wire.unpacked(body), ACTS[act].method
        token.require_method(method if isinstance(method, str) else method(node))
        digest, run = digest_of(act.encode(), body), self._run(id)
        if not run.lock.acquire(timeout=max(0.0, until - time.monotonic())):
            raise Refusal("busy")
        try:
            # dropped while this request waited: two curators of one run would both answer
            if self._held.get(id) is not run or run.ends:
                raise Refusal("busy")
            if run.curator is None:
                self._take_up(run, token.name)
            if run.last is not None and run.last[0] == key and run.last[1] == digest:
                return run.last[2]
            if self.records.knows(id, key):
                raise Refusal("key-reused")
            return self._done(run, token, act, key, digest, body, node)
        finally:
            run.lock.release()

    @staticmethod
    def _require_live(record: RunRecord | None) -> None:
        """A run goes on, or was finished: its end may be repeated, and a statement be made of it."""
        if record is None or (record.state != OPEN and record.how != FINISHED):
            raise Refusal("ended")

    def _done(
        self, run: Run, token: Token, act: str, key: str, digest: bytes, body: bytes, node: Node
    ) -> bytes:
        size = len(body) + A_REQUEST

        def room(more: int) -> None:
            nonlocal size
            size += more
            self.records.require_disk(size)
            self.records.require_room(token.id, size, self.limits)

        try:
            if ACTS[act].kept:
                run.room = room
                room(0)
            if act == ATTACH:
                self._require_codes(token.id)
            content = ACTS[act].do(run, node)
            if act == STATEMENT:
                return self._published(run.id, content)
            reply = wire.packed(content)
            if ACTS[act].kept:
                self.records.keep(run.id, key, digest, act, body, size)
                run.last = (key, digest, reply)
            if act == FINISH:
                self._over(run.id, FINISHED)
                finished = [one for one in list(self._held.values()) if one.is_over]
                for one in finished[:-MOST_FINISHED]:
                    self._drop(one)
        except BaseException as error:
            # a release was admitted and did not come: the run is over, and charged whole
            if run.curator.has_failed:
                self.end(run.id, f"an answer failed inside{WHOLE}")
                raise Refusal("internal", detail=type(error).__name__) from error
            if not isinstance(error, FairveilError | Refusal) or isinstance(error, DoorError):
                self._drop(run)  # what is on the disk is what counts
            raise
        return reply

    def _require_codes(self, token: str) -> None:
        """So many attached models of one token's open runs: each is as long as the table. Runs that
        were finished let go of theirs."""
        mine = [run for run in list(self._held.values()) if run.token == token and run.handles]
        for run in mine:
            if run.is_over:
                self._drop(run)
        if sum(len(run.handles) for run in mine if not run.is_over) >= self.limits.codes:
            raise Refusal("no-room")

    def _published(self, id: str, text: str) -> bytes:
        """A statement, as it is kept and signed."""
        self.records.put(id, statement=text)
        signed = None if self.key is None else signing.signed_text(text, self.key).to_json()
        signature = None if signed is None else json.loads(signed)
        return wire.packed({"statement": json.loads(text), "signature": signature})

    def _run(self, id: str) -> Run:
        with self._lock:
            return self._held.setdefault(id, Run(id))

    def _drop(self, run: Run) -> None:
        """Let go of a run in memory, and of its journal."""
        with self._lock:
            if self._held.get(run.id) is run:
                del self._held[run.id]
        if run.curator is not None:
            run.curator.journal.close()

    def _take_up(self, run: Run, who: str) -> None:
        """Its curator, behind its last answer: all that was asked is asked again, and given again by
        the journal."""
        record = self.records.run(run.id)  # it may have ended since
        try:
            self._require_live(record)
            text = self.records.text(run.id, "opening")
            if record is None or text is None:
                raise Refusal("ended")
            run.token = record.token
            dataset = self.datasets[record.dataset]
            run.opening = Opening.of(wire.MESSAGE.of(json.loads(text)), dataset, self.limits)
            require_same(record.rows, dataset.digest)
            self._curate(run, who, is_new=False)
            for one in self.records.asked(run.id):
                reply = wire.packed(ACTS[one["act"]].do(run, wire.unpacked(one["body"])))
                run.last = (one["key"], one["digest"], reply)
        except BaseException as error:
            self._drop(run)
            # an error that says nothing of the run: the same request goes on later
            passes = isinstance(error, LedgerAway | DoorError)
            if isinstance(error, FairveilError) and not passes:
                self._over(run.id, f"could not be taken up again{WHOLE}")
                raise Refusal("ended", detail=str(error)) from error
            raise

    # -- ending ------------------------------------------------------------------------------------

    def end(self, id: str, how: str, wait: float | None = None) -> bool:
        """End a run for good; whether it was still open. A request on its way is waited for, and
        charged; `wait`: at most so many seconds, and then it is ended another time. None at all: a
        run that is being asked goes on."""
        run = self._run(id)
        run.ends = run.ends or wait != 0.0
        if not run.lock.acquire(timeout=-1 if wait is None else wait):
            return False
        try:
            failed = run.curator is not None and run.curator.has_failed
            if run.curator is not None:
                run.curator.close()  # which charges what a copy of the journal released, too
            how = f"{how}{WHOLE}" if failed and not how.endswith(WHOLE) else how
            was_open = self._over(
                id, how
            )  # where it cannot be written, nothing more is asked of it
            self._drop(run)
            return was_open
        finally:
            run.lock.release()

    def _over(self, id: str, how: str) -> bool:
        record = self.records.run(id)
        if record is None or record.state not in (OPENING, OPEN):
            return False
        if how == NEVER_BEGAN:
            self._never_began(id)
            return True
        released, sitting, lost = None, 0, True
        with suppress(PrivacyError):
            written = Journal(self.records.journal(id))
            if written.entries:
                done = compose(entry.event for entry in written.entries)
                released = json.dumps(to_json_dict(done))
            # an answer that was not written whole may have been seen
            lost, sitting = written.is_cut or written.is_new, written.sitting
        how = f"{how}{WHOLE}" if lost and not how.endswith(WHOLE) else how
        self.records.put(id, state=SETTLING, how=how, released=released, sitting=sitting)
        if how != FINISHED:
            self.records.clear(id)
        self._settle(id)
        return True

    def _settle(self, id: str) -> None:
        """Tell the ledger; where it cannot be told, the clock tries again, and meanwhile all of it
        is charged."""
        record = self.records.run(id)
        if record is not None and record.dataset in self.datasets:
            with suppress(FairveilError, OSError):
                settle(record, self.datasets[record.dataset].ledger)
                self.records.put(id, state=ENDED)

    def _tidy(self) -> None:
        """Runs that were being opened when a server died are given back, and ledgers are told what
        they could not be told."""
        for record in self.records.runs(OPENING):
            if record.id not in self._held:
                with suppress(FairveilError, OSError):
                    self.end(record.id, NEVER_BEGAN)
        for record in self.records.runs(SETTLING):
            self._settle(record.id)

    def sweep(self, now: float | None = None) -> None:
        """What is done every few seconds: runs that nobody asked for too long end, and a look
        whether all answer."""
        now, trouble = time.time() if now is None else now, ""
        try:
            old = now - 60.0 * self.limits.run_minutes
            for record in self.records.runs(OPEN):
                if record.how == STOP:
                    self.end(record.id, "stopped by the holder", wait=1.0)
                elif record.touched < old:
                    self.end(record.id, "ended by the clock", wait=0.0)
            self._tidy()
            query = f"SELECT id FROM runs WHERE state = '{ENDED}' AND opening IS NOT NULL AND "
            for row in self.records.rows(f"{query}(how != ? OR touched < ?)", FINISHED, old):
                self._drop(self._run(row["id"]))
                self.records.clear(row["id"])
            self.records.forget(now - DAY * self.limits.keep_days)
            self.records.require_disk()
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
        return not self.trouble and not late and self.records.can_write
