"""A server: data sets, tokens, and runs that are opened by an analyst, asked, and settled. The
holder's curator checks, prices and answers, as it does beside the rows; here is who may ask it,
once, and what is written down.

    opening -> open -> settling -> ended

A run reserves its whole plan in the data set's ledger before it is asked anything. Its requests are
numbered. The last one repeated gets the same reply; a run that is not in memory, since the server
was started anew, is opened again by its analyst under the same key and asked again from the first
request on: its journal gives what was released, and nothing is drawn or charged again
(theory.md#repeats). A run has a lock of its own, and no other lock is held while anything is priced,
read, reserved or answered.

Guarantees (tests/serving/test_serving_runs.py, tests/serving/test_serving_crashes.py):
1. No reply leaves before its release is on the disk; one request has one reply, also after the
   server or its machine was started anew. Where that cannot be, the run is over, and charged whole.
2. A run that ends before its plan did, by its analyst, by the holder or by the clock, is charged
   what it released; one whose answer failed inside is charged whole. What it held in memory and on
   the disk is free then.
3. A run is its token's: others are told what they are told of a run that is not there.
4. All answers of a run are of the same rows, in the same order.
5. A request reaches the curator through the catalogue of `wire` alone.
6. Words of the analyst in a statement are marked as the analyst's.
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
from dataclasses import dataclass, field
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
from ..facts import Cells, RowBlock, RowLayout
from ..ledger import Ledger, Spend
from ..methods import score_bins
from ..models import LinearModel, MixtureModel
from ..models.files import ARRAYS_FILE, MODEL_FILE, from_files
from ..statement import signing
from ..statement.document import PrivacyStatement, PublicFact
from .holder import DataSet, Holder, root_of
from .pricing import Pricer
from .records import ENDED, FINISHED, OPEN, OPENING, SETTLING, STOP, Records, RunRecord, Token
from .refusals import Refusal
from .wire import MESSAGES, MOST_NUMBERS, SAID, Reader, View, array_of, packed, unpacked

PASSPHRASE_VARIABLE = "FAIRVEIL_KEY_PASSPHRASE"
PROTOCOL = 4
WHOLE, NEVER_BEGAN = ", charged whole", "never began"
MOST_HANDLES, MOST_TABLE, MOST_FINISHED, A_NUMBER = 64, 1 << 20, 16, 12
"""Models of a run; cells of a code's table; curators that are kept for a statement, which mostly
comes next; and bytes that are kept of each number of an answer."""
CLOSE, FINISH, STATEMENT, ATTACH = "close", "finish", "statement", "attach"
SERVED = "a curator behind a door; it read the rows by this data set's schema alone"


def digest_of(act: str, body: bytes) -> bytes:
    """Of a request: what tells a repeated one from another."""
    return hashlib.sha256(act.encode() + b"\0" + body).digest()


@dataclass(frozen=True, eq=False)
class Opening:
    """What a run asks for when it is opened: a guarantee, the whole plan, and a view of the rows."""

    dataset: DataSet
    promise: Promise
    plan: Event
    view: View
    sources: int
    seeds: tuple[str, ...] | None
    public_rows: int | None
    stated_clips: tuple[float, ...] | None
    purpose: str

    @property
    def deltas(self) -> tuple[float, float]:
        """Those of which a price matters: the guarantee's own, and the ledger's."""
        return self.promise.delta, self.dataset.promise.delta

    def curator(self, id: str, who: str, journal: Journal) -> Curator:
        """The holder's, begun or behind its last answer."""
        rows, told = self.dataset.rows_of(self.view), self.public_rows
        facts = [PublicFact("served by", SERVED, "schema"), *self.dataset.stated(self.view)]
        if told is not None and told != self.dataset.schema.rows:
            facts.append(PublicFact("number of rows", f"{SAID}{told}", "argument"))
        if self.seeds is None:
            noise = [NoiseSource.secure() for _ in range(self.sources)]
        else:
            noise = [NoiseSource(root_of(one), secure=False) for one in self.seeds]
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
    """A run that is held in memory, and the lock that has one request at a time. `count`: requests
    that were done; `last`: digest and reply of the last one; `known`: answers that its journal gives
    again; `ends`: no request begins any more; `is_over`: it was finished."""

    id: str
    token: str = ""
    opening: Opening | None = None
    curator: Any = None
    handles: dict[int, Attached] = field(default_factory=dict)
    count: int = 0
    last: tuple[bytes, bytes] = (b"", b"")
    known: int = 0
    room: Callable[[int], None] = lambda size: None
    ends: bool = False
    is_over: bool = False
    touched: float = field(default_factory=time.time)
    lock: Any = field(default_factory=threading.RLock)

    def do(self, act: str, node: Node) -> Any:
        """What an act answers: its fields, read by the catalogue, are the arguments of the method
        of its name."""
        given = Reader(self.curator.layout, self.handles).fields(node, MESSAGES[act])
        return getattr(self, act)(**given)

    def ask(self, asks: list[Any], batch: Any, purpose: str) -> Any:
        """Joint noisy answers."""
        layout = self.curator.layout
        sizes = (one.question.models * int(np.prod(one.question.shape(layout))) for one in asks)
        numbers, fix = sum(sizes), "Ask fewer questions at once."
        few = numbers <= MOST_NUMBERS
        need(few, f"at most {MOST_NUMBERS} numbers in one answer", of="ask", got=numbers, fix=fix)
        self._take(A_NUMBER * numbers)
        return {"answers": self.curator.answer(asks, batch, purpose=purpose)}

    def choose(
        self, questions: list[Any], epsilon: float, cell_weights: Any, costs: Any, purpose: str
    ) -> Any:
        """The exponential mechanism, by costs or weights."""
        self._take(A_NUMBER)
        weights = None if cell_weights is None else cell_weights.ravel().tolist()
        how = {"cell_weights": weights, "costs": costs, "purpose": purpose}
        index = self.curator.choose(questions, epsilon, **how)
        return {"index": np.array([index], np.int64)}

    def _take(self, size: int) -> None:
        """A refusal where so many bytes more would be too many; what is given again is there."""
        if self.known:
            self.known -= 1
        else:
            self.room(size)

    def attach(self, **told: Any) -> Any:
        """A finished model of the analyst's, beside the rows."""
        count, fix = len(self.handles), "Open another run."
        few = count < MOST_HANDLES
        need(few, f"at most {MOST_HANDLES} models", of="attach", got=count, fix=fix)
        self.handles[count] = attached(self.curator, **told)
        return {"handle": count}

    def rescale(self, scale: Any, shift: Any) -> Any:
        """New units of the numbers, made of what was released."""
        count, fix = len(self.curator.scalings), "Open another run."
        few = count < MOST_HANDLES
        need(few, f"at most {MOST_HANDLES} new units", of="rescale", got=count, fix=fix)
        self.curator.rescale(scale, shift)
        return {"rescaled": True}

    def table(self, most: int) -> Any:
        """Features and labels, where the holder serves them and they are public."""
        assert self.opening is not None
        if not self.opening.dataset.features_served:
            raise Refusal("forbidden", got="the table of features, which is not served")
        found = self.curator.public_table(None, most=most)
        parts = {name: getattr(found, name) for name in ("features", "labels", "weights")}
        return {**parts, "step": found.step}

    def finish(self) -> Any:
        """The plan was done."""
        self.curator.finish()
        self.is_over = True
        return {"finished": True}

    def statement(self, not_covered: list[str]) -> Any:
        """What was released, at what price: its text."""
        return PrivacyStatement.of_run(self.curator, not_covered=not_covered).to_json()


ACTS = tuple(act for act in MESSAGES if act not in ("open", "divide"))
LOOKS = ("table", STATEMENT)
"""Acts that release nothing and change nothing: they have no number."""


# -- models of the analyst's -----------------------------------------------------------------------


def rule_of(
    layout: RowLayout,
    model: Node | None,
    edges: Any,
    cells: Cells | None,
    table: Node | None,
    count: int,
) -> DescribedRule:
    """How rows get their codes, checked against the shape of the rows. The model is one of the
    library's own kinds, as its files say it; no code comes with it."""
    classes, found = tuple(layout.classes or ()), None if model is None else _model(model, layout)
    fix = "Describe a model of this data set's schema; fairveil.remote does."

    def require(holds: object, expected: str, got: object) -> None:
        need(holds, expected, of="attach", got=got, fix=fix)

    if found is not None:
        same, got = tuple(found.classes) == classes, list(found.classes)
        require(same, f"a model of the classes {list(classes)}", got)
    if edges is not None:
        edges, scored = (
            score_bins.given(edges),
            len(classes) == 2 and isinstance(found, LinearModel),
        )
        wanted = "bins of the score of a linear model of two classes"
        require(scored, wanted, type(found).__name__)
    decisions, codes = len(classes) if edges is None else len(edges) + 1, None
    require(cells is None or cells.mode == "product", "product groups", "others")
    require(0 < count <= MOST_CODES, f"1 to {MOST_CODES} codes", count)
    if table is None:
        require(count >= decisions, f"at least {decisions} codes", count)
    else:
        codes, groups = array_of(table), 1 if cells is None else cells.count
        shapes = [(groups, labels, decisions) for labels in (1, len(classes))]
        right = codes.dtype.kind in "iu" and codes.shape in shapes and codes.size <= MOST_TABLE
        require(right, f"whole numbers of shape {shapes[0]} or {shapes[1]}", codes.shape)
        within = int(codes.min()) >= 0 and int(codes.max()) < count
        require(within, f"codes from 0 to {count - 1}", "others")
        codes = np.asarray(codes, np.int64)
    return DescribedRule(found, decisions, edges, cells, codes)


def attached(curator: Curator, *, title: str, handle: str, count: int, **told: Any) -> Attached:
    """A described model's decisions, bins or probabilities, kept beside the rows once it was tried
    on made-up ones: beside true rows its errors are masked, and count as code 0."""
    rule = rule_of(curator.layout, count=count, **told)
    model, table, reads = rule.model, rule.table, rule.columns_read  # guarantee 7
    chance = np.random.default_rng()

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
    plain, fix = table is None and rule.edges is None, "Attach a model's codes."
    need(plain, "no table and no edges", of=handle, got="some", fix=fix)
    if handle == "decisions":
        return curator.attach(codes, title=title)
    right = handle == "probabilities" and model is not None
    need(right, "probabilities of a model", of="handle", got=handle, fix=fix)
    return curator.attach(probabilities, title=title)


def _model(node: Node, layout: RowLayout) -> Any:
    node.only(("files", "arrays"))
    arrays = array_of(node["arrays"])
    if arrays.dtype != np.uint8 or arrays.ndim != 1:
        node["arrays"].refuse("the bytes of a model's arrays", str(arrays.dtype))
    files = {MODEL_FILE: node["files"].text().encode(), ARRAYS_FILE: arrays.tobytes()}
    model = from_files(files)
    for part in model.models if isinstance(model, MixtureModel) else (model,):
        if not isinstance(part, LinearModel):
            node.refuse("a linear or additive model, or a mixture of these", type(part).__name__)
        own = part.layout
        if (own.numbers, tuple(own.code_sizes)) != (layout.numbers, tuple(layout.code_sizes)):
            wanted = f"a model of {layout.numbers} numbers and codes of {list(layout.code_sizes)}"
            node.refuse(wanted, f"{own.numbers} numbers and codes of {list(own.code_sizes)}")
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
    """One holder's records, data sets and runs; the service knows HTTP alone."""

    def __init__(self, holder: Holder) -> None:
        """Rows are read and checked, the ledgers are found, and what an earlier server left half
        done is settled; open runs wait for their analysts."""
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
            for one in holder.datasets:
                self.datasets[one.name] = DataSet(one, self.records)
            for record in self.records.runs(OPEN):
                self.records.put(record.id, touched=time.time())
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
        told = {"service": "fairveil", "version": version, "protocol": PROTOCOL, "public_key": pem}
        return {**told, "holder": self.holder.name, "fingerprint": self.fingerprint}

    def facts(self, token: Token, name: str) -> dict[str, Any]:
        """What a token may know of one data set: public facts, and what is left of its budget."""
        found = self.datasets.get(name)
        if found is None or not token.may_see(name):
            raise Refusal("not-found")
        return found.facts()

    def _asked(self, token: Token, name: str) -> DataSet:
        """A data set that a token may ask, and its ledger has what was spent."""
        found = self.datasets.get(name)
        if found is None or not token.may_see(name):
            raise Refusal("not-found")
        if found.lacks is not None:
            raise Refusal("ledger-away", kind="LedgerAway", detail=f"it lacks {found.lacks}")
        return found

    # -- opening -----------------------------------------------------------------------------------

    def known(self, token: Token, key: str, body: bytes) -> bytes | None:
        """The reply of a run that this key opened before, which is taken up where it is not in
        memory."""
        found = self.records.run_of_key(token.id, key)
        if found is None:
            return None
        if found.digest != digest_of("open", body):
            raise Refusal("key-reused")
        if found.state == OPENING:
            if found.id in self._held:
                raise Refusal("busy")
            self.end(found.id, NEVER_BEGAN)  # it died before it was open
            return None
        if found.kept and found.id not in self._held:
            self._take_up(found, token, body)
        return packed({"run": found.id})

    def opening(self, token: Token, body: bytes) -> Opening:
        """What is asked for, checked before it is priced: nothing is reserved, and no row read."""
        given = Reader().fields(unpacked(body, most=0), MESSAGES["open"])
        dataset = self._asked(token, given.pop("dataset"))
        asked, most = Opening(dataset=dataset, **given), dataset.promise.delta
        promise, limits, seeds = asked.promise, self.limits, asked.seeds

        def require(
            holds: object, expected: str, of: str, got: object, fix: str, **more: Any
        ) -> None:
            need(holds, expected, of=of, got=got, fix=fix, **more)

        fix, told = "Nothing is served without privacy.", {"error": LedgerError}
        require(promise.is_private, "a finite epsilon", "promise", "inf", fix, **told)
        # a larger one says less than the ledger's, whatever its epsilon
        fix, got = f"Pass delta={most:g}, the ledger's, or a smaller one.", promise.delta
        require(got <= most, f"a delta of at most {most:g}", "promise", got, fix, **told)
        count = sum(1 for _ in islice(counted(asked.plan), limits.plan_events + 1))
        expected, fix = f"at most {limits.plan_events} different events", "Ask fewer kinds."
        require(count <= limits.plan_events, expected, "plan", "more", fix)
        right = (
            0 < asked.sources <= limits.sources
            and len(seeds or [0] * asked.sources) == asked.sources
        )
        require(
            right, f"1 to {limits.sources} sources", "sources", asked.sources, "Fit fewer models."
        )
        right = asked.public_rows is None or asked.public_rows > 0
        require(right, "a number above 0", "public_rows", asked.public_rows, "Leave it out.")
        if seeds is not None and not dataset.served.seeded:
            raise Refusal("forbidden", got="random_state: a seed, where noise is secure")
        for one in seeds or ():
            root_of(one)
        dataset.require_part(token.id, asked.view)
        dataset.layout_of(asked.view)  # says what is wrong with it
        dataset.ledger.require(promise, secure=seeds is None, schema=dataset.schema)
        return asked

    def open(self, token: Token, key: str, body: bytes, asked: Opening) -> bytes:
        """A new run, of a plan that was priced in time."""
        dataset, id, now = asked.dataset, secrets.token_hex(16), time.time()
        told = (dataset.name, dataset.digest, OPENING, "", asked.promise.epsilon, now, now)
        record, run = (
            RunRecord(id, token.id, key, digest_of("open", body), *told),
            Run(id, token.id),
        )
        with run.lock:
            with self._lock:
                self._held[id] = run
            try:
                self.records.begin(record, self.limits.open_runs, self.limits.open_runs_in_all)
                self._curate(run, asked, token.name, is_new=True)
                self.records.put(id, state=OPEN, spend=run.curator.journal.ledger[1])
            except BaseException as error:
                self._drop(run)
                # a refused curator has given back what it reserved
                withdrew = isinstance(error, FairveilError) and not isinstance(error, LedgerAway)
                with suppress(FairveilError, OSError):  # else the clock does
                    self._never_began(id, withdrew=withdrew)
                raise
        return packed({"run": id})

    def _curate(self, run: Run, asked: Opening, who: str, *, is_new: bool) -> None:
        journal = Journal(self.records.journal(run.id))
        fix, right = "Restore it from a copy.", journal.is_new == is_new
        need(right, "its journal", of="run", got="another", fix=fix, error=PrivacyError)
        run.opening, run.known = asked, len(journal.entries)
        run.curator = asked.curator(run.id, who, journal)

        def room(size: int) -> None:
            self.records.require_disk(size)
            mine = [one for one in list(self._held.values()) if one.token == run.token]
            replies = sum(len(one.last[1]) for one in mine)
            if self.records.kept(run.token) + replies + size > self.limits.kept_bytes:
                raise Refusal("no-room")

        run.room = room

    def _never_began(self, id: str, *, withdrew: bool = False) -> None:
        """What was reserved is given back, and all that was written goes."""
        record = self.records.run(id)
        if record is None:
            return
        if not withdrew or record.spend is not None:
            settle(record, self.datasets[record.dataset].ledger)
        self.records.clear(id, forgets=True)

    def _take_up(self, record: RunRecord, token: Token, body: bytes) -> None:
        """A run's curator, in another sitting of its journal: guarantee 1."""
        with self._lock:
            run = self._held.setdefault(record.id, Run(record.id, token.id))
        with run.lock:
            if run.curator is not None or self._held.get(run.id) is not run:
                return
            try:
                self._require_live(self.records.run(run.id))  # it may have ended since
                if record.rows != self.datasets[record.dataset].digest:
                    raise Refusal("rows-changed")
                self._curate(run, self.opening(token, body), token.name, is_new=False)
            except BaseException as error:
                self._drop(run)
                # an error that says nothing of the run: the same request goes on later
                passes = isinstance(error, LedgerAway | DoorError)
                if isinstance(error, FairveilError) and not passes:
                    self._over(run.id, f"could not be taken up again{WHOLE}")
                    raise Refusal("ended", detail=str(error)) from error
                raise

    def divide(self, token: Token, name: str, body: bytes) -> bytes:
        """A division of a data set in two parts by coins of the holder's; how many rows each has,
        where the number of rows is public."""
        given = Reader().fields(unpacked(body, most=0), MESSAGES["divide"])
        return packed(self._asked(token, name).divide(token.id, **given))

    # -- asking ------------------------------------------------------------------------------------

    def act(self, token: Token, id: str, act: str, key: str, body: bytes, until: float) -> bytes:
        """One request to a run: the reply that was given before, or a new one. `key`: its number;
        `until`: by the monotonic clock."""
        record = self.records.run(id)
        if record is None or record.token != token.id or act not in (*ACTS, CLOSE):
            raise Refusal("not-found")
        if act == CLOSE:
            self.end(id, "closed by the analyst")
            return packed({"ended": True})
        self._require_live(record)
        self._asked(token, record.dataset)
        node, digest, run = unpacked(body), digest_of(act, body), self._held.get(id)
        if run is None:
            raise Refusal("resume")
        if not run.lock.acquire(timeout=max(0.0, until - time.monotonic())):
            raise Refusal("busy")
        try:
            # dropped while this request waited: two curators of one run would both answer
            if self._held.get(id) is not run or run.ends or run.curator is None:
                raise Refusal("busy")
            if act in LOOKS:
                return self._done(run, act, node)
            number = int(key) if key.isdecimal() else 0
            if number == run.count and digest == run.last[0]:
                return run.last[1]
            if number <= run.count:
                raise Refusal("key-reused")
            if number > run.count + 1:
                raise Refusal("resume")
            reply = self._done(run, act, node)
            run.count, run.last, run.touched = number, (digest, reply), time.time()
            return reply
        finally:
            run.lock.release()

    @staticmethod
    def _require_live(record: RunRecord | None) -> None:
        """A run goes on, or was finished: its end may be repeated, and a statement be made of it."""
        if record is None or (record.state != OPEN and record.how != FINISHED) or not record.kept:
            raise Refusal("ended")

    def _done(self, run: Run, act: str, node: Node) -> bytes:
        try:
            if act == ATTACH:
                self._require_codes(run.token)
            content = run.do(act, node)
            reply = packed(self._signed(content) if act == STATEMENT else content)
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

    def _signed(self, text: str) -> dict[str, Any]:
        signed = None if self.key is None else signing.signed_text(text, self.key).to_json()
        signature = None if signed is None else json.loads(signed)
        return {"statement": json.loads(text), "signature": signature}

    def _drop(self, run: Run) -> None:
        """Let go of a run in memory, and of its journal."""
        with self._lock:
            if self._held.get(run.id) is run:
                del self._held[run.id]
        if run.curator is not None:
            run.curator.journal.close()

    # -- ending ------------------------------------------------------------------------------------

    def end(self, id: str, how: str, wait: float | None = None) -> bool:
        """End a run for good; whether it was still open. A request on its way is waited for, and
        charged; `wait`: at most so many seconds, and then it is ended another time. None at all: a
        run that is being asked goes on."""
        with self._lock:
            run = self._held.setdefault(id, Run(id))
        run.ends = run.ends or wait != 0.0
        if not run.lock.acquire(timeout=-1 if wait is None else wait):
            return False
        try:
            failed = run.curator is not None and run.curator.has_failed
            if run.curator is not None:
                run.curator.close()  # which charges what a copy of the journal released, too
            how = f"{how}{WHOLE}" if failed and not how.endswith(WHOLE) else how
            was_open = self._over(id, how)  # where it cannot, nothing more is asked of it
            self._drop(run)
            return was_open
        finally:
            if run.curator is None:  # nothing of it is here: it is ended another time
                self._drop(run)
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
        how, now = f"{how}{WHOLE}" if lost and not how.endswith(WHOLE) else how, time.time()
        state = {"state": SETTLING, "how": how, "touched": now}
        self.records.put(id, **state, released=released, sitting=sitting)
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
                held = self._held.get(record.id)
                touched = max(record.touched, 0.0 if held is None else held.touched)
                if record.how == STOP:
                    self.end(record.id, "stopped by the holder", wait=1.0)
                elif touched < old:
                    self.end(record.id, "ended by the clock", wait=0.0)
            self._tidy()
            query = f"SELECT id FROM runs WHERE kept = 1 AND state = '{ENDED}' AND "
            for row in self.records.rows(f"{query}(how != ? OR touched < ?)", FINISHED, old):
                if row["id"] in self._held:
                    self._drop(self._held[row["id"]])
                self.records.clear(row["id"])
            self.records.require_disk()
            if not self.records.can_write:
                with self.records.writing() as db:  # does it write again?
                    db.execute("UPDATE facts SET version = version")
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
