"""Rows on the workers of a dask cluster: a shard is an actor there, made from a recipe. Needs
dask.distributed.

Guarantees (tests/curator/test_curator_dask_rows.py):
1. A fit is that of the same rows in memory, to the bit, whatever becomes of workers.
2. What travels is public (questions, recipes) or an exact total: never a row. Without TLS only this
   machine is trusted, unless told otherwise in so many words.
3. The scheduler, its dashboard and all logs see bytes: no value, no traceback of ours.
"""

from __future__ import annotations

import ipaddress
import uuid
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Self
from urllib.parse import urlsplit

from .. import _checks
from ..curator.rows.sharded import Recipe, Shards
from ..curator.shards.asking import Asking
from ..curator.shards.serving import VERSION, version
from ..curator.shards.shard import Failed, packed, unpacked
from ..data.encoding import ByEncoding
from ..data.files import PathLike
from ..data.pieces import pieces_of
from ..data.store import Store
from ..errors import InputError, PrivacyError
from ..facts.rows import RowBlock, Traits
from ..facts.schema import Schema
from .dask_actor import ShardActor
from .dask_writing import write_partitions

PATIENCE = 600.0
INSTALL = "pip install 'fairveil[dask]'"
LOCAL = "local"
QUIET = {
    "distributed.worker.profile.enabled": False,  # a look at every stack each 10 ms
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
}
"""Of a cluster of our own: nobody looks at what these watch, and they cost a fifth of a small
round."""


class ShardedSource(ByEncoding, ABC):
    """A `RowSource` whose rows are elsewhere: pass it to `fit`. Abstract."""

    def __init__(
        self,
        source: PathLike | Store,
        schema: Schema | None,
        shards: int,
        sensitive_as_feature: bool,
        precision: str,
    ) -> None:
        self._encoding, self.pieces = pieces_of(
            source,
            schema,
            shards=shards,
            sensitive_as_feature=sensitive_as_feature,
            precision=precision,
        )

    @property
    def traits(self) -> Traits:
        """What a fit must know of these rows."""
        return Traits(is_sharded=True)

    def blocks(self) -> Iterator[RowBlock]:
        """The rows, read in this process: for what is done with each row, such as predictions. A
        fit does not call it."""
        for piece in self.pieces:
            yield from piece.open().blocks()

    @abstractmethod
    def shards(self) -> Shards:
        """The shards at work, opened for one fit."""

    @abstractmethod
    def close(self) -> None:
        """Let go of what works for this source."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.pieces)} shards)"


class DaskRows(ShardedSource):
    """A coded store, a Parquet or CSV file, a folder or a pattern of these, read by the workers of
    a dask cluster.

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
        source: PathLike | Store,
        schema: Schema | None = None,
        *,
        shards: int | None = None,
        threads: int | None = 1,
        patience: float = PATIENCE,
        trust_network: bool = False,
        sensitive_as_feature: bool = False,
        precision: str = "float64",
    ) -> None:
        self._patience, self._threads = _checks.positive(patience=patience), threads
        own = client is None or isinstance(client, str)
        if isinstance(client, str) and client != LOCAL:
            require_private(client, trust_network=trust_network)
        self._client = connected(client)
        self._end = weakref.finalize(self, _left, self._client) if own else None
        try:
            self._trust_network = trust_network
            count = threads_of(self._client, trust_network=trust_network)
            super().__init__(source, schema, shards or count, sensitive_as_feature, precision)
        except BaseException:
            self.close()
            raise

    @classmethod
    def from_dataframe(
        cls,
        client: object,
        frame: Any,
        schema: Schema,
        folder: PathLike,
        *,
        overwrite: bool = False,
        sensitive_as_feature: bool = False,
        precision: str = "float64",
        **options: Any,
    ) -> DaskRows:
        """The rows of a dask dataframe, each partition coded and written to `folder` by the worker
        that has it.

        Parameters
        ----------
        client : distributed.Client, str or None
            The cluster that computes the frame: its client, its address, or None for workers of
            this machine.
        frame : dask dataframe
            Partitions are the stores, in their order. Each must fit the memory of its worker.
        schema : Schema
            How rows are coded. One with a unit is refused: a person's rows may lie in any
            partition.
        folder : path
            Where all workers find it by the same path. It holds a copy of the rows, for its owner
            alone: remove it after use.
        overwrite : bool, default=False
            Replace stores that are there.
        sensitive_as_feature : bool, default=False
            Whether sensitive columns are features, too.
        precision : {"float64", "float32"}, default="float64"
            How numbers are kept.
        **options : dict
            `shards`, `threads`, `patience`, `trust_network` of `DaskRows`.

        Returns
        -------
        DaskRows
            A source for `fit`.

        Raises
        ------
        InputError
            A partition could not be computed, coded or written. The error shows no value of a row.
        PrivacyError
            The scheduler is on another machine without TLS, or the schema has a unit.
        """
        own = client is None or isinstance(client, str)
        if isinstance(client, str) and client != LOCAL:
            require_private(client, trust_network=bool(options.get("trust_network")))
        found = connected(client)
        try:
            threads_of(found, trust_network=bool(options.get("trust_network")))
            coded: dict[str, Any] = {
                "sensitive_as_feature": sensitive_as_feature,
                "precision": precision,
            }
            write_partitions(found, frame, schema, folder, overwrite=overwrite, **coded)
            rows = cls(found, folder, **options)
        except BaseException:
            if own:
                _left(found)
            raise
        rows._end = weakref.finalize(rows, _left, found) if own else None
        return rows

    def shards(self) -> Shards:
        """Actors of their own for each fit."""
        settings: dict[str, Any] = {"threads": self._threads, "patience": self._patience}
        return DaskShards(self._client, self.pieces, **settings, trust_network=self._trust_network)

    def close(self) -> None:
        """Leave the cluster; end one that was started here."""
        if self._end is not None:
            self._end()


class DaskShards(Asking):
    """Actors of a cluster, one a shard. What they say is bytes, made and read by us."""

    def __init__(
        self,
        client: Any,
        recipes: Sequence[Recipe],
        *,
        threads: int | None,
        patience: float,
        trust_network: bool = False,
    ) -> None:
        self._client, self._threads, self._trust_network = client, threads, trust_network
        self._actors: dict[int, Any] = {}
        self._late: set[str] = set()  # workers that did not answer in time: others are asked first
        super().__init__(recipes, patience)

    def close(self) -> None:
        """Let the actors go."""
        self._actors.clear()

    def _asked(self, wanted: dict[int, tuple[str, Any]]) -> dict[int, Any]:
        self._make([number for number in wanted if number not in self._actors], wanted)
        messages: dict[int, bytes] = {}
        packed_once: dict[int, bytes] = {}
        for number, (what, value) in wanted.items():
            if what == "open":
                messages[number] = packed([(0, "open", self.recipes[number])])
            else:
                messages[number] = packed_once.setdefault(id(value), packed([(0, what, value)]))
        found = self._exchanged(messages)
        return {number: answers[0] for number, answers in found.items()}

    def _make(self, numbers: Sequence[int], wanted: dict[int, tuple[str, Any]]) -> None:
        """Actors where there are none: a lost one is made from its recipe, and told what the first
        was told."""
        futures = {
            number: self._client.submit(
                ShardActor,
                self._threads,
                actor=True,
                pure=False,
                key=f"fairveil-shard-{number}-{uuid.uuid4().hex}",
                **self._prompt(),
            )
            for number in numbers
        }
        for number, future in futures.items():
            actor = _within(lambda future=future: future.result(timeout=self.patience))
            if actor is not None:
                # a worker may have come later
                require_private(str(actor._address), trust_network=self._trust_network)
                self._actors[number] = actor
        made = {
            number: packed([(0, VERSION, None)]) for number in numbers if number in self._actors
        }
        for found in self._exchanged(made).values():
            if found[0] != version():
                remedy = "Install one version of fairveil and numpy on all machines."
                raise PrivacyError.expected(version(), of="a worker", got=found[0], remedy=remedy)
        again = [
            number for number in numbers if number in self._actors and wanted[number][0] != "open"
        ]
        lines = {
            number: packed(
                [
                    (0, what, self.recipes[number] if what == "open" else value)
                    for what, value in self._remade(number)
                ]
            )
            for number in again
        }
        for number, answers in self._exchanged(lines).items():
            self._require_same(number, answers[0])
            for answer in answers[1:]:
                if isinstance(answer, Failed):
                    self._refuse(number, answer)

    def _prompt(self) -> dict[str, Any]:
        """Where actors are made anew, once a worker was late: rather on others, without insisting
        on it."""
        others = (
            [one for one in _within(self._client.nthreads) or () if one not in self._late]
            if self._late
            else []
        )
        return {"workers": others, "allow_other_workers": True} if others else {}

    def _exchanged(self, messages: dict[int, bytes]) -> dict[int, Any]:
        """Answers by shard; one whose worker is lost, or late, is missing, and so is its actor from
        then on."""
        waiting = {}
        for number, message in messages.items():
            if number in self._actors:
                waiting[number] = _within(
                    lambda number=number, message=message: self._actors[number].done(message)
                )
        answers: dict[int, Any] = {}
        for number, future in waiting.items():
            raw = (
                None
                if future is None
                else _within(lambda future=future: future.result(timeout=self.patience))
            )
            if raw is None:
                lost = self._actors.pop(number, None)
                self._late |= (
                    {str(lost._address)}
                    if lost is not None and hasattr(lost, "_address")
                    else set()
                )
                self._require_scheduler()
            else:
                answers[number] = unpacked(raw)
        return answers

    def _require_scheduler(self) -> None:
        """A scheduler that ended ends the fit: what was spent stays spent."""
        if self._client.status in ("running", "connecting"):
            known = _within(lambda: self._client.run_on_scheduler(_alive))
            if known is not None:
                return
        remedy = "Start it again, and resume with checkpoint=; what was spent is on the ledger."
        raise PrivacyError.expected(
            "a scheduler that answers", of="dask", got="none", remedy=remedy
        )


def _left(client: Any) -> None:
    """Of a client that was made here, and a cluster that was started here."""
    cluster = client.cluster
    client.close()
    if cluster is not None:
        cluster.close()


def _alive() -> bool:
    return True


def _within(work: Any) -> Any:
    """What a call gives; None where the cluster fails, whose words may be anything."""
    try:
        return work()
    except Exception:
        return None


def connected(client: object) -> Any:
    """A client of a cluster: as it is, of an address, or of workers of this machine."""
    try:
        import distributed
    except ImportError:
        raise InputError.expected(
            "dask.distributed", of="client", got="none", remedy=INSTALL
        ) from None
    if isinstance(client, distributed.Client):
        return client
    if client is None or client == LOCAL:
        return distributed.Client(local_cluster())  # type: ignore[no-untyped-call]
    remedy = (
        'Pass Client("tls://scheduler:8786", security=...), that address, or None for this machine.'
    )
    client = _checks.instance(str, "client", client, remedy, "a client of a cluster")
    try:
        return distributed.Client(client, timeout=10)  # type: ignore[no-untyped-call]
    except (OSError, TypeError, ValueError, TimeoutError):
        failed = True
    assert failed
    remedy = "Check the address, and the certificates that dask is configured with."
    raise InputError.expected("a scheduler that answers", of="client", got=client, remedy=remedy)


def local_cluster(workers: int | None = None, **options: object) -> Any:
    """Worker processes of this machine under dask, without dashboard and profiler:
    `distributed.LocalCluster`, made quiet."""
    try:
        import dask
        from distributed import LocalCluster
    except ImportError:
        raise InputError.expected(
            "dask.distributed", of="client", got="none", remedy=INSTALL
        ) from None
    given = {
        "n_workers": workers,
        "threads_per_worker": 1,
        "dashboard_address": None,
        "memory_limit": 0,
        "silence_logs": 50,
    }
    with dask.config.set(QUIET):  # workers take it over when they are started
        return LocalCluster(**(given | options))  # type: ignore[no-untyped-call]


def threads_of(client: Any, *, trust_network: bool) -> int:
    """How many threads a cluster's workers have, once scheduler and workers were found to be where
    totals may travel."""
    require_private(str(client.scheduler.address), trust_network=trust_network)
    workers: dict[str, int] = client.nthreads()
    for address in workers:
        require_private(address, trust_network=trust_network)
    if not any(workers.values()):
        remedy = "Start workers: dask worker ADDRESS."
        raise InputError.expected("a cluster with workers", of="client", got="none", remedy=remedy)
    return sum(workers.values())


def require_private(address: str, *, trust_network: bool) -> None:
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
