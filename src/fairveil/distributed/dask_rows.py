"""Rows on the workers of a dask cluster: a shard is an actor there, made from a recipe. Needs
dask.distributed.

Guarantees (tests/curator/test_curator_dask_rows.py):
1. A fit is that of the same rows in memory, to the bit, whatever becomes of workers.
2. What travels is public (questions, recipes) or an exact total: never a row. Without TLS only this
   machine is trusted, unless told otherwise in so many words.
3. The scheduler, its dashboard and all logs see bytes: no value, no traceback of ours.
4. A person's rows lie in one store, cut between persons; else they are refused.
"""

from __future__ import annotations

import ipaddress
import uuid
import weakref
from collections.abc import Iterator
from typing import Any, Self
from urllib.parse import urlsplit

from .. import _checks
from ..curator.shards.asking import Asking
from ..curator.shards.serving import VERSION, Worker, version
from ..curator.shards.shard import Failed, packed, unpacked
from ..data.pieces import pieces_of
from ..data.reading import PathLike, need_package
from ..data.rows import EncodedRows
from ..errors import InputError, PrivacyError
from ..facts.rows import RowBlock, RowLayout, Traits
from ..facts.schema import Schema

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

    def asked(self, asking: Asking, wanted: dict[int, tuple[str, Any]]) -> dict[int, Any]:
        """Answers by shard: see `Workers`."""
        self._make(asking, wanted)
        messages: dict[int, bytes] = {}
        once: dict[int, bytes] = {}  # what all are asked is packed once
        for number, (what, value) in wanted.items():
            if what == "open":
                messages[number] = packed([(0, "open", asking.recipes[number])])
            else:
                messages[number] = once.setdefault(id(value), packed([(0, what, value)]))
        found = self._exchanged(messages, asking.patience)
        return {number: answers[0] for number, answers in found.items()}

    def _make(self, asking: Asking, wanted: dict[int, tuple[str, Any]]) -> None:
        """Actors where there are none: a lost one is made from its recipe, and told what the first
        was told."""
        prompt: dict[str, Any] = {}
        if self.late:  # rather on others, without insisting on it
            known = _within(self._client.nthreads) or ()
            others = [one for one in known if one not in self.late]
            prompt = {"workers": others, "allow_other_workers": True} if others else {}
        futures = {}
        for number in sorted(wanted.keys() - self.actors.keys()):
            key = f"fairveil-shard-{number}-{uuid.uuid4().hex}"
            how: dict[str, Any] = {"actor": True, "pure": False, "key": key, **prompt}
            futures[number] = self._client.submit(Worker, 1, **how)
        for number, future in futures.items():
            actor = _within(lambda future=future: future.result(timeout=asking.patience))
            if actor is not None:
                # a worker may have come later
                _require_private(str(actor._address), self._trust_network)
                self.actors[number] = actor
        lines = {}
        for number in futures:
            told = asking.remade(number) if wanted[number][0] != "open" else []
            told[:1] = [("open", asking.recipes[number])] * bool(told)
            lines[number] = packed([(0, VERSION, None), *((0, *one) for one in told)])
        for number, (theirs, *answers) in self._exchanged(lines, asking.patience).items():
            if theirs != version():
                remedy = "Install one version of fairveil and numpy on all machines."
                raise PrivacyError.expected(version(), of="a worker", got=theirs, remedy=remedy)
            for answer in answers[:1]:
                asking.require_same(number, answer)
            for answer in answers[1:]:
                if isinstance(answer, Failed):
                    asking.refuse(number, answer)

    def _exchanged(self, messages: dict[int, bytes], patience: float) -> dict[int, Any]:
        """Answers by shard; one whose worker is lost, or late, is missing, and so is its actor from
        then on."""
        waiting = {
            number: _within(lambda n=number, message=message: self.actors[n].answered(message))
            for number, message in messages.items()
            if number in self.actors
        }
        answers: dict[int, Any] = {}
        for number, future in waiting.items():
            raw = None
            if future is not None:
                raw = _within(lambda future=future: future.result(timeout=patience))
            if raw is None:
                lost = self.actors.pop(number, None)
                self.late |= {str(lost._address)} if hasattr(lost, "_address") else set()
                self.require_scheduler()
            else:
                answers[number] = unpacked(raw)
        return answers

    def require_scheduler(self) -> None:
        """A scheduler that ended ends the fit: what was spent stays spent."""
        is_on = self._client.status in ("running", "connecting")
        if is_on and _within(lambda: self._client.run_on_scheduler(_alive)) is not None:
            return
        remedy = "Start it again, and resume with checkpoint=; what was spent is on the ledger."
        raise PrivacyError.expected(
            "a scheduler that answers", of="dask", got="none", remedy=remedy
        )


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
