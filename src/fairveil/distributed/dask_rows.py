"""Rows on the workers of a dask cluster: a shard is an actor there, made from a recipe. Needs
dask.distributed.

Guarantees (tests/curator/test_curator_dask_rows.py, test_curator_shards.py):
1. A fit is that of the same rows in memory, to the bit, whatever becomes of workers: an answer is
   kept by the number of its shard, so one that comes twice counts once; a worker that ended, or has
   not answered in time, is replaced; after `TRIES` times the fit ends, and what was spent stays.
2. A shard that is made anew has the rows of the first, or is refused: their bytes are compared.
3. What travels is public (questions, recipes) or an exact total: never a row. Without TLS only this
   machine is trusted, unless told otherwise in so many words. What goes wrong after rows were taken
   says nothing of them: only that there was no answer.
4. The scheduler, its dashboard and all logs see bytes: no value, no traceback of ours.
5. A person's rows lie in one store, cut between persons; else they are refused.
"""

from __future__ import annotations

import hashlib
import ipaddress
import pickle
import uuid
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn, Self
from urllib.parse import urlsplit

import numpy as np

from .. import _checks, errors
from .._types import Floats, Ints
from ..core.extra.sharded import Request, ShardFacts, Taking
from ..core.passes import largest, longest_row, totals
from ..core.rows import Maps, Rows
from ..data.pieces import pieces_of
from ..data.reading import PathLike, need_package
from ..data.rows import EncodedRows
from ..data.store import Facts
from ..errors import FairveilError, InputError, PrivacyError
from ..facts.rows import RowBlock, RowLayout, RowSource, Traits, traits_of
from ..facts.schema import Schema

Line = tuple[str, Any]
"""A message to a shard: "open" a recipe, "take" rows so, "read" some, "answer" a request."""
TRIES = 4
PATIENCE = 600.0
LOCAL = "local"
QUIET = {
    "distributed.worker.profile.enabled": False,  # a look at every stack each 10 ms
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
}
"""Of a cluster of our own: nobody looks at what these watch, and they cost a fifth of a small
round."""


class DaskRows:
    """A coded store, a Parquet or CSV file, a folder or a pattern of these, read by the workers of
    a dask cluster: a `RowSource` for `fit`.

    `client`: a `distributed.Client`, or the address of a scheduler; None: workers of this machine
    (`local_cluster`). Files must be where workers find them by the same path. `shards`: as many as
    workers have threads unless you say otherwise; the answers are the same to the bit. `patience`:
    seconds after which a worker that has not answered is taken for lost. `trust_network`: accept a
    scheduler without TLS on another machine, whose network then sees exact totals of protected
    rows.
    """

    def __init__(
        self,
        client: Any,
        source: PathLike | EncodedRows,
        schema: Schema | None = None,
        *,
        shards: int | None = None,
        patience: float = PATIENCE,
        trust_network: bool = False,
        sensitive_as_feature: bool = False,
        precision: str = "float64",
    ) -> None:
        self._patience, self._trust_network = _checks.positive(patience=patience), trust_network
        self._client = _connected(client, trust_network)
        own = self._client is not client
        self._end = weakref.finalize(self, _left, self._client) if own else None
        try:
            options: Any = {"sensitive_as_feature": sensitive_as_feature, "precision": precision}
            count = _threads_of(self._client, trust_network)
            self.encoding, self.pieces = pieces_of(
                source, schema, shards=shards or count, **options
            )
        except BaseException:
            self.close()
            raise

    @property
    def layout(self) -> RowLayout:
        """The public shape."""
        return self.encoding.layout

    @property
    def facts(self) -> Facts:
        """What a statement about these rows says beside their schema: what their stores say."""
        told = (getattr(piece, "facts", ()) for piece in self.pieces)
        return tuple(dict.fromkeys(chain.from_iterable(told)))

    @property
    def traits(self) -> Traits:
        """What a fit must know of these rows."""
        return Traits(is_sharded=True)

    def blocks(self) -> Iterator[RowBlock]:
        """The rows, read in this process: for what is done with each row, such as predictions. A
        fit does not call it."""
        for piece in self.pieces:
            yield from piece.open().blocks()

    def shards(self) -> Asking:
        """Actors of their own for each fit."""
        actors = Actors(self._client, self._trust_network)
        return Asking(self.pieces, actors, self._patience)

    def close(self) -> None:
        """Leave the cluster; end one that was started here."""
        if self._end is not None:
            self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Asking:
    """Shards that are asked by workers (`core.extra.sharded.Shards`): what is kept of each, and what
    is said when it cannot answer.

    `patience`: seconds after which a worker that has not answered is taken for lost, and replaced.
    """

    def __init__(self, recipes: Sequence[Any], workers: Any, patience: float) -> None:
        if not recipes:
            raise InputError.expected(
                "at least one shard", of="source", got="none", remedy="Pass rows."
            )
        self.recipes, self.workers, self.patience = tuple(recipes), workers, patience
        # All that was told after opening, in order: a shard that is made anew is told it again.
        self._told: list[list[Line]] = [[] for _ in recipes]
        self._opened: tuple[Opened, ...] = ()
        found = self._all([("open", recipe) for recipe in self.recipes])
        for number, opened in enumerate(found):
            self.require_same(number, opened)
        self._opened = tuple(found)

    @property
    def counts(self) -> tuple[int, ...]:
        """How many rows each shard has."""
        return tuple(one.rows for one in self._opened)

    def tell(self, what: str, values: Sequence[Any]) -> list[Any]:
        """How rows are taken, or which are read; what shards say to that."""
        if what == "take":
            self._told = [[] for _ in self.recipes]
        said = self._all([(what, value) for value in values])
        for told, value in zip(self._told, values, strict=True):
            told.append((what, value))
        return said

    def answers(self, requests: Sequence[Request | None]) -> list[Any]:
        """One answer a shard."""
        return self._all([None if request is None else ("answer", request) for request in requests])

    def close(self) -> None:
        """Let workers go."""
        self.workers.close()

    def _all(self, wanted: Sequence[Line | None]) -> list[Any]:
        answers: dict[int, Any] = {}
        asked = [number for number, line in enumerate(wanted) if line is not None]
        for _ in range(TRIES):
            lines: dict[int, list[Line]] = {}
            for number in asked:
                line = wanted[number]
                if line is not None and number not in answers:
                    lines[number] = [*self._before(number, line), line]
            if not lines:
                break
            for number, said in self.workers.exchanged(lines, self.patience).items():
                for answer in said:
                    if isinstance(answer, Failed):
                        _refuse(number, answer)
                if len(said) > 1:
                    self.require_same(number, said[0])
                # Guarantee 1: a lost worker's answer may come late, beside that of its successor.
                answers.setdefault(number, said[-1])
        if lacking := [number for number in asked if number not in answers]:
            remedy = "Give workers more memory, or cut the rows into more shards; resume."
            got = f"none after {TRIES} workers: they ended, or took longer than {self.patience:g} s"
            of = f"shard {lacking[0]}"
            raise PrivacyError.expected("an answer", of=of, got=got, remedy=remedy, quote=False)
        return [answers.get(number) for number in range(len(wanted))]

    def _before(self, number: int, line: Line) -> list[Line]:
        """What a shard must be told before that line, when it is made anew."""
        if line[0] == "open" or self.workers.holds(number):
            return []
        return [("open", self.recipes[number]), *self._told[number]]

    def require_same(self, number: int, opened: Opened) -> None:
        """A worker of this version, with the rows of the first time."""
        if opened.version != version():
            remedy = "Install one version of fairveil and numpy on all machines."
            got = opened.version
            raise PrivacyError.expected(version(), of="a worker", got=got, remedy=remedy)
        # Sums over other rows would be priced as those of the first, so a changed file ends the
        # fit.
        if self._opened and opened != self._opened[number]:
            remedy = "Keep files as they are while a fit runs, and the same on all machines."
            expected, of = "the rows of the first time", f"shard {number}"
            raise PrivacyError.expected(expected, of=of, got="others", remedy=remedy, quote=False)


def _refuse(number: int, failed: Failed) -> NoReturn:
    family = getattr(errors, failed.kind, None)
    if failed.words and isinstance(family, type) and issubclass(family, FairveilError):
        raise family(f"shard {number}: {failed.words}") from None
    remedy = "Look at files and versions where the worker runs; its own words might show a row."
    got, of = failed.kind or "a failure", f"shard {number}"
    raise PrivacyError.expected("an answer", of=of, got=got, remedy=remedy, quote=False) from None


class Actors:
    """One actor of a cluster for each shard. `late`: workers that did not answer in time: others
    are asked first."""

    def __init__(self, client: Any, trust_network: bool = False) -> None:
        self._client, self._trust_network = client, trust_network
        self.actors: dict[int, Any] = {}
        self.late: set[str] = set()

    def close(self) -> None:
        """Let the actors go."""
        self.actors.clear()

    def holds(self, number: int) -> bool:
        """Whether a shard has its actor."""
        return number in self.actors

    def exchanged(self, lines: dict[int, list[Line]], patience: float) -> dict[int, list[Any]]:
        """Answers by shard; one whose worker is lost, or late, is missing, and so is its actor from
        then on."""
        self._make(sorted(lines.keys() - self.actors.keys()), patience)
        once: dict[tuple[int, ...], bytes] = {}  # what all are asked is packed once
        waiting: dict[int, Any] = {}
        for number in lines.keys() & self.actors.keys():
            same = tuple(id(value) for _, value in lines[number])
            if same not in once:
                once[same] = packed(lines[number])
            actor, message = self.actors[number], once[same]
            waiting[number] = _within(lambda a=actor, m=message: a.answered(m))
        answers: dict[int, list[Any]] = {}
        for number, future in waiting.items():
            raw = None
            if future is not None:
                raw = _within(lambda future=future: future.result(timeout=patience))
            if raw is None:
                lost = self.actors.pop(number)
                self.late.add(str(lost._address))
                self.require_scheduler()
            else:
                answers[number] = unpacked(raw)
        return answers

    def _make(self, numbers: Sequence[int], patience: float) -> None:
        """Actors where there are none."""
        prompt: dict[str, Any] = {}
        if self.late:  # rather on others, without insisting on it
            known = _within(self._client.nthreads) or ()
            others = [one for one in known if one not in self.late]
            prompt = {"workers": others, "allow_other_workers": True} if others else {}
        futures = {}
        for number in numbers:
            key = f"fairveil-shard-{number}-{uuid.uuid4().hex}"
            how: dict[str, Any] = {"actor": True, "pure": False, "key": key, **prompt}
            futures[number] = self._client.submit(Shard, 1, **how)
        for number, future in futures.items():
            actor = _within(lambda future=future: future.result(timeout=patience))
            if actor is not None:
                # a worker may have come later
                _require_private(str(actor._address), self._trust_network)
                self.actors[number] = actor

    def require_scheduler(self) -> None:
        """A scheduler that ended ends the fit: what was spent stays spent."""
        is_on = self._client.status in ("running", "connecting")
        if is_on and _within(lambda: self._client.run_on_scheduler(_alive)) is not None:
            return
        remedy = "Start it again, and resume with checkpoint=; what was spent is on the ledger."
        raise PrivacyError.expected(
            "a scheduler that answers", of="dask", got="none", remedy=remedy
        )


# -- where the rows are ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Opened:
    """What a recipe gave: how many rows, what says that they are the same ones another time, and
    the version of what adds them up."""

    rows: int
    fingerprint: str
    version: str


@dataclass(frozen=True)
class Failed:
    """No answer. `kind` and `words` only of what was found before rows were taken, whose errors
    show no value."""

    kind: str = ""
    words: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class _Taken:
    """Rows as they are taken: each block changed in turn."""

    source: RowSource
    taking: Taking

    @property
    def layout(self) -> RowLayout:
        return self.taking.layout

    @property
    def traits(self) -> Traits:
        of = traits_of(self.source)
        return Traits(is_mapped=of.is_mapped, require_same=of.require_same)

    def blocks(self) -> Iterator[RowBlock]:
        for block in self.source.blocks():
            for change in self.taking.changes:
                block = change(block)
            yield block


class Shard:
    """The rows of one recipe, and the integers that it answers with. `threads`: a knob of speed."""

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads
        self._source: RowSource | None = None
        self._rows: dict[int | None, Rows] = {}  # all, and those of each reading
        self._rescaled: tuple[Any, Rows] | None = None

    def answered(self, message: bytes) -> bytes:
        """`said`, of bytes. Nothing is raised: tracebacks carry values, and engines log them."""
        try:
            return packed(self.said(unpacked(message)))
        except Exception:
            return packed([Failed()])

    def said(self, lines: list[Line]) -> list[Any]:
        """What is said to each line, in turn. An error of opening may say what is wrong; after rows
        were taken not even its kind is told: it could depend on one of them."""
        out: list[Any] = []
        for what, value in lines:
            try:
                out.append(getattr(self, f"_{what}")(value))
            except Exception as error:
                words = str(error) if isinstance(error, FairveilError) else ""
                out.append(Failed(type(error).__name__, words) if what == "open" else Failed())
        return out

    def _open(self, recipe: Any) -> Opened:
        """How many rows, and their fingerprint: that of the source where it knows one, else of
        every byte."""
        self._source = source = recipe.open()
        rows = sum(block.rows for block in source.blocks())
        known = traits_of(source).fingerprint
        return Opened(rows, _fingerprint(source) if known is None else known, version())

    def _take(self, taking: Taking) -> ShardFacts:
        assert self._source is not None
        rows = Rows(_Taken(self._source, taking), max_sample_weight=taking.max_sample_weight)
        self._rows, self._rescaled, told = {None: rows}, None, rows.person_by_person
        facts = (rows.exact_count, rows.labelled, rows.weighted, rows.sparse, rows.largest_weight)
        return ShardFacts(*facts, None if told is None else np.concatenate(told))

    def _read(self, reading: tuple[int, Any, bool, bool]) -> None:
        number, bits, adds_by_person, one_group = reading
        rows = self._rows[None]
        assert rows.person_by_person is not None
        inside = np.unpackbits(bits, count=rows.exact_count).astype(np.bool_)
        cuts = np.cumsum([len(one) for one in rows.person_by_person])[:-1]
        ways = {"adds_by_person": adds_by_person, "one_group": one_group}
        self._rows[number] = rows.reading(np.split(inside, cuts), **ways)

    def _answer(self, asked: Request) -> Any:
        rows, args = self._in_units(asked.maps, asked.reading), asked.args
        # A warning about a number would be a message about a row.
        with np.errstate(all="ignore"):
            match asked.what:
                case "total":
                    chosen = rows.blocks() if asked.places is None else rows.drawn(asked.places)
                    return totals(args[0], rows, chosen, self._threads)
                case "largest":
                    question, order, exact = args
                    return largest(question, rows, order, exact=exact, threads=self._threads)
                case "longest":
                    return longest_row(rows)
                case "number":
                    return rows.largest_number
                case _:
                    return _extremes(rows, *args)

    def _in_units(self, maps: Maps, reading: int | None) -> Rows:
        """The rows, rescaled as the curator has done it so far: once, for all rounds after."""
        rows = self._rows[reading]
        if not maps:
            return rows
        key = (reading, *(array.tobytes() for pair in maps for array in pair))
        if self._rescaled is None or self._rescaled[0] != key:
            for scale, shift in maps:
                rows = rows.rescaled(scale[:, 0], shift[:, 0])
            self._rescaled = (key, rows)
        return self._rescaled[1]


def _extremes(rows: Rows, column: int) -> tuple[Ints, Floats, Floats]:
    """Of each group of a sensitive column: how many rows, and the ends of each feature (numbers,
    then codes) among them."""
    groups = len(rows.layout.sensitive[column])
    counts = np.zeros(groups, np.int64)
    low = np.full((rows.layout.numbers + len(rows.layout.code_sizes), groups), np.inf)
    high = -low
    for block in rows.blocks():
        at = block.sensitive[column].astype(np.intp)
        counts += np.bincount(at, minlength=groups)
        lines = np.concatenate([block.numbers.astype(np.float64), block.codes.astype(np.float64)])
        for group in np.unique(at):
            mine = lines[:, at == group]
            low[:, group] = np.minimum(low[:, group], mine.min(axis=1))
            high[:, group] = np.maximum(high[:, group], mine.max(axis=1))
    return counts, low, high


@cache
def version() -> str:
    """What two processes must have in common to work on one fit: numpy, and the code that adds."""
    told, room = hashlib.blake2b(digest_size=8), Path(__file__).parent.parent
    for file in sorted(room.glob("core/**/*.py")):
        # Integers are added across machines: code that differs by a line may clip or round
        # otherwise.
        told.update(file.relative_to(room).as_posix().encode() + file.read_bytes())
    return f"curator {told.hexdigest()}, numpy {np.__version__}"


def packed(value: object) -> bytes:
    """A message between processes of one fit."""
    return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)


def unpacked(message: bytes) -> Any:
    """What `packed` packed."""
    # Only between processes that one fit started or that a cluster trusts: never from a file or an
    # analyst.
    return pickle.loads(message)


def _fingerprint(source: RowSource) -> str:
    told = hashlib.blake2b(digest_size=16)
    for block in source.blocks():
        for array in (block.numbers, block.codes, block.labels, block.sensitive, block.weights):
            if array is not None:
                told.update(f"{array.dtype}{array.shape}".encode())
                told.update(np.ascontiguousarray(array).tobytes())
    return told.hexdigest()


# -- the cluster -----------------------------------------------------------------------------------


def _within(work: Any) -> Any:
    """What a call gives; None where the cluster fails, whose words may be anything."""
    try:
        return work()
    except Exception:
        return None


def _alive() -> bool:
    return True


def _left(client: Any) -> None:
    """Of a client that was made here, and a cluster that was started here."""
    cluster = client.cluster
    client.close()
    if cluster is not None:
        cluster.close()


def _connected(client: object, trust_network: bool) -> Any:
    """A client of a cluster: as it is, of an address, or of workers of this machine."""
    need_package("distributed", "client", "dask")
    import distributed

    if isinstance(client, distributed.Client):
        return client
    if client is None or client == LOCAL:
        return distributed.Client(local_cluster())  # type: ignore[no-untyped-call]
    remedy = 'Pass Client("tls://scheduler:8786", security=...), that address, or None.'
    address = _checks.instance(str, "client", client, remedy, "a client of a cluster")
    _require_private(address, trust_network)
    made = _within(lambda: distributed.Client(address, timeout=10))  # type: ignore[no-untyped-call]
    if made is None:
        remedy = "Check the address, and the certificates that dask is configured with."
        raise InputError.expected(
            "a scheduler that answers", of="client", got=client, remedy=remedy
        )
    return made


def local_cluster(workers: int | None = None, **options: object) -> Any:
    """Worker processes of this machine under dask, without dashboard and profiler:
    `distributed.LocalCluster`, made quiet."""
    need_package("distributed", "client", "dask")
    import dask
    from distributed import LocalCluster

    given: dict[str, object] = {"n_workers": workers, "threads_per_worker": 1, "memory_limit": 0}
    given |= {"dashboard_address": None, "silence_logs": 50}
    with dask.config.set(QUIET):  # workers take it over when they are started
        return LocalCluster(**(given | options))  # type: ignore[no-untyped-call]


def _threads_of(client: Any, trust_network: bool) -> int:
    """How many threads a cluster's workers have, once scheduler and workers were found to be where
    totals may travel."""
    workers: dict[str, int] = client.nthreads()
    for address in (str(client.scheduler.address), *workers):
        _require_private(address, trust_network)
    if not any(workers.values()):
        remedy = "Start workers: dask worker ADDRESS."
        raise InputError.expected("a cluster with workers", of="client", got="none", remedy=remedy)
    return sum(workers.values())


def _require_private(address: str, trust_network: bool) -> None:
    """Un-noised totals travel: encrypted, or inside this machine."""
    told = urlsplit(address if "://" in address else f"tcp://{address}")
    if trust_network or told.scheme in ("tls", "wss", "inproc", "ucxx+tls"):
        return
    host = told.hostname or ""
    try:
        here = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        here = False
    if not here:
        remedy = (
            "Start scheduler and workers with TLS (tls://...); or pass trust_network=True where "
            "the network is yours alone."
        )
        raise PrivacyError.expected(
            "TLS beyond this machine", of="client", got=address, remedy=remedy
        )
