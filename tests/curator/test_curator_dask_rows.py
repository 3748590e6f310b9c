"""Rows on a dask cluster: the guarantees of `distributed/dask_rows.py`. One cluster of this machine
for all tests."""

from __future__ import annotations

import io
import logging
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import warnings
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd
import pytest
from shard_samples import (
    PLANTED,
    SCHEMA,
    SPOILT,
    Halting,
    Killer,
    Wrong,
    answers,
    refuses_and_spends_nothing,
    rows_of,
    same,
    spoilt,
    table,
    written,
)

import fairveil as fv
from fairveil import data
from fairveil.curator import Curator, RowCount, Rows
from fairveil.distributed import DaskRows, dask_rows, local_cluster
from fairveil.distributed.dask_rows import Actors, Asking, _require_private
from fairveil.errors import FairveilError, InputError, PrivacyError
from fairveil.privacy import Promise
from fairveil.statement.document import PrivacyStatement

dask, distributed = pytest.importorskip("dask"), pytest.importorskip("distributed")
# an engine's own, of sockets and tasks of clusters that end
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def client() -> Any:
    """Two workers of this machine, which a nanny starts again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cluster = local_cluster(2, dashboard_address="127.0.0.1:0")
        client = distributed.Client(cluster)
        yield client
        client.close()
        cluster.close()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Rows on the disk."""
    return written(tmp_path_factory.mktemp("rows"), "store")


def test_guarantee_1_the_same_bits_though_workers_are_killed_before_they_answer(
    client: Any, tmp_path: Path
) -> None:
    shards = Asking(Halting.recipes(tmp_path, 4), Actors(client), patience=120.0)
    killer = Killer(tmp_path, seed=1, most=1)
    truth = answers(Rows(data.encode(table(), SCHEMA)))
    assert same(answers(rows_of(shards), between=killer), truth)
    assert len(killer.killed) == 1


def test_guarantee_1_fits_are_those_of_rows_in_memory(client: Any, store: Any) -> None:
    clf = fv.FairClassifier("demographic_parity:0.1", epsilon=2.0, random_state=0)
    here = clf.fit(data.encode(table(), SCHEMA)).coef_
    assert np.array_equal(clf.fit(DaskRows(client, store)).coef_, here)
    assert clf.privacy_.epsilon <= 2.0


def test_guarantee_1_a_worker_that_hangs_is_replaced(client: Any, store: Any) -> None:
    shards = DaskRows(client, store, shards=2, patience=20.0).shards()
    rows = rows_of(shards)
    expected = answers(Rows(data.encode(table(), SCHEMA)))
    processes = client.run(os.getpid)
    hung = processes[shards.workers.actors[0]._address]
    os.kill(hung, signal.SIGSTOP)
    require = shards.workers.require_scheduler

    def patiently() -> None:
        """Once a worker was late: long patience with the one that must be made anew."""
        shards.patience = 60.0
        require()

    shards.workers.require_scheduler = patiently
    shards.patience = 3.0
    try:
        assert same(answers(rows), expected)
    finally:
        os.kill(hung, signal.SIGCONT)


def test_a_worker_of_another_version_is_refused(
    client: Any, store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_rows, "version", lambda: "curator of next year")
    with pytest.raises(PrivacyError, match="curator of next year"):
        DaskRows(client, store).shards()


@pytest.mark.parametrize("how", SPOILT)
def test_files_that_are_others_where_they_are_read_end_a_fit_before_its_charge(
    client: Any, tmp_path: Path, how: str
) -> None:
    source, spoil = spoilt(tmp_path, how)
    rows = DaskRows(client, source, SCHEMA if how == "another file" else None)
    spoil()
    refuses_and_spends_nothing(lambda: rows, tmp_path, SPOILT[how])


@pytest.mark.parametrize("shards", [1, 3, 17])
def test_guarantee_1_the_same_bits_whatever_the_cut_also_of_a_frame_that_was_written(
    client: Any, store: Any, tmp_path: Path, shards: int
) -> None:
    frames = pytest.importorskip("dask.dataframe")
    people = pd.DataFrame(table())
    truth = answers(Rows(data.encode(people, SCHEMA)))
    source = DaskRows(client, store, shards=shards)
    assert len(source.pieces) == shards
    assert same(answers(rows_of(source.shards())), truth)
    frame = frames.from_pandas(people, npartitions=shards)
    frame.to_parquet(tmp_path / "frame")
    source = DaskRows(client, tmp_path / "frame", SCHEMA, shards=shards)
    assert same(answers(rows_of(source.shards())), truth)
    with pytest.raises(InputError, match="to_parquet"):
        fv.FairClassifier().fit(frame, people["hired"], sensitive_features="sex")


def test_guarantee_4_persons_in_several_parts_are_refused(client: Any, tmp_path: Path) -> None:
    whose = SCHEMA.with_unit("who", 2)
    people = pd.DataFrame(table()).assign(who="ann")
    (tmp_path / "p").mkdir()
    (tmp_path / "s").mkdir()
    for number in range(2):
        people.to_parquet(tmp_path / "p" / f"{number}.parquet")
        data.encode(people, whose, tmp_path / "s" / f"{number}.store")
    for place, schema in ((tmp_path / "p", whose), (tmp_path / "s", None)):
        with pytest.raises(PrivacyError, match="one store of all rows"):
            DaskRows(client, place, schema)
    data.encode(people, whose, tmp_path / "one.store", block_rows=100)
    assert len(DaskRows(client, tmp_path / "one.store", shards=17).pieces) == 1  # all are ann's


def test_guarantee_2_beyond_this_machine_tls_is_demanded() -> None:
    for address in (
        "tls://10.0.0.1:8786",
        "tcp://127.0.0.1:8786",
        "tcp://[::1]:1",
        "inproc://a/1",
        "localhost:8786",
    ):
        _require_private(address, False)
    for address in (
        "tcp://10.0.0.1:8786",
        "scheduler:8786",
        "ws://example.org",
        "tcp://0.0.0.0:1",
        "tcp://127.example.org",
    ):
        with pytest.raises(PrivacyError, match="TLS beyond this machine"):
            _require_private(address, False)
        with pytest.raises(PrivacyError):
            DaskRows(address, "nowhere.store")  # refused before anything is connected
        _require_private(address, True)


WORKER = """
import asyncio, sys
from distributed import Worker
async def work():
    async with Worker(sys.argv[1], host=sys.argv[2], nthreads=1, dashboard=False) as worker:
        await worker.finished()
asyncio.run(work())
"""


def test_guarantee_2_a_worker_beyond_this_machine_is_refused_though_the_scheduler_is_here(
    store: Any, tmp_path: Path
) -> None:
    """A scheduler that all addresses reach, called by this machine's own; a worker under the
    address that others would use."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # nothing is sent: it tells by which address this machine would
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no address but its own")
        outside = probe.getsockname()[0]
    cluster = local_cluster(1, host="0.0.0.0")
    here = "tcp://127.0.0.1:" + cluster.scheduler_address.rpartition(":")[2]
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    worker = subprocess.Popen([sys.executable, "-c", WORKER, here, outside], **silent)  # type: ignore[call-overload]
    client = distributed.Client(here)
    try:
        client.wait_for_workers(2, timeout=60)
        assert any(outside in address for address in client.nthreads())
        refuses_and_spends_nothing(
            lambda: DaskRows(client, store), tmp_path, "TLS beyond this machine", PrivacyError
        )
        shards = DaskRows(client, store, shards=2, trust_network=True).shards()
        assert same(answers(rows_of(shards)), answers(Rows(data.encode(table(), SCHEMA))))
    finally:
        worker.kill()
        worker.wait()
        client.close()
        cluster.close()


def test_guarantee_3_nothing_that_the_engine_keeps_shows_a_row(client: Any, tmp_path: Path) -> None:
    heard = io.StringIO()
    handler = logging.StreamHandler(heard)
    logging.getLogger().addHandler(handler)
    try:
        with pytest.raises(FairveilError) as error:
            rows_of(Asking([Wrong(str(tmp_path))], Actors(client), patience=60.0))
    finally:
        logging.getLogger().removeHandler(handler)
    seen = [f"{error.value!r} {error.value} {error.value.__context__!r}", heard.getvalue()]
    seen += [str(client.get_scheduler_logs()), str(client.get_worker_logs())]
    seen += [str(client.run_on_scheduler(_state)), str(client.get_events())]
    pages = _dashboard(client)
    assert not any(PLANTED in one for one in [*seen, *pages.values()])
    assert "fairveil-shard-0" in seen[-2]  # it was looked at where tasks are
    shown = client.submit(_shows, pure=False, key="a-task-of-somebody-else")
    with pytest.raises(ValueError, match=PLANTED):
        shown.result()
    assert sum(PLANTED in page for page in _dashboard(client).values()) >= 2  # what shows is found


def _shows() -> None:
    raise ValueError(PLANTED)


def _dashboard(client: Any) -> dict[str, str]:
    """The pages of a cluster's dashboard, as a browser gets them."""
    info = client.run_on_scheduler(_places)
    paths = ["main/workers", "main/exceptions", "main/logs", *(f"task/{key}" for key in info[1])]
    paths += [f"{kind}/{quote(one, '')}" for one in info[2] for kind in ("worker", "logs")]
    found = {}
    for path in paths:
        address = f"http://127.0.0.1:{info[0]}/info/{path}.html"
        with urllib.request.urlopen(address, timeout=30) as page:
            found[path] = page.read().decode()
    return found


def _places(dask_scheduler: Any) -> tuple[int, list[str], list[str]]:
    return dask_scheduler.http_server.port, list(dask_scheduler.tasks), list(dask_scheduler.workers)


def _state(dask_scheduler: Any) -> list[str]:
    """All that the scheduler knows of tasks, which is what its dashboard draws."""
    tasks = dask_scheduler.tasks.values()
    return [
        f"{task!r} {task.exception!r} {task.traceback!r} {task.exception_text} "
        f"{task.traceback_text}"
        for task in tasks
    ]


def test_a_scheduler_that_ends_ends_the_fit_and_what_was_spent_stays(store: Any) -> None:
    cluster = local_cluster(1)
    client = distributed.Client(cluster)
    try:
        shards = DaskRows(client, store, shards=1, patience=20.0).shards()
        curator = Curator(rows_of(shards), Promise(5.0, 1e-6))
        curator.answer([(RowCount(), 9.0)])
        cluster.close()
        with pytest.raises(PrivacyError, match=r"a scheduler that answers|an answer"):
            curator.answer([(RowCount(), 9.0)])
        assert PrivacyStatement.of_run(curator).epsilon > 0
        assert len(curator.log) == 1
    finally:
        client.close()
        cluster.close()


CLUSTER = """
import sys, time
from pathlib import Path
from distributed import LocalCluster
cluster = LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None, memory_limit=0)
Path(sys.argv[1] + ".new").write_text(cluster.scheduler_address)
Path(sys.argv[1] + ".new").rename(sys.argv[1])
while True:
    time.sleep(1)
"""


def test_a_fit_goes_on_after_its_scheduler_was_killed(
    store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process of the scheduler is killed in the middle of a fit: another cluster goes on, and
    it is charged once. Its bits are those of a fit in this process that was interrupted at the same
    answer: noise after a break is other noise, by design."""

    def fitted(rows: Any, folder: str, ledger: Any = None) -> Any:
        clf = fv.FairClassifier(
            "demographic_parity:0.1", epsilon=2.0, solver=fv.PrimalDual(rounds=12), random_state=0
        )
        return clf.set_params(ledger=ledger, checkpoint=tmp_path / folder).fit(rows)

    ledger = fv.Ledger.create(tmp_path / "ledger.db", "people", epsilon=5.0, delta=1e-5)
    address = tmp_path / "address"
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    cluster = subprocess.Popen([sys.executable, "-c", CLUSTER, str(address)], **silent)  # type: ignore[call-overload]
    answer, answered = Curator.answer, list[int]()

    def breaks(self: Curator, *args: Any, **options: Any) -> Any:
        answered.append(1)
        if len(answered) == 8:
            raise KeyboardInterrupt
        return answer(self, *args, **options)

    def kills(self: Curator, *args: Any, **options: Any) -> Any:
        answered.append(1)
        if len(answered) == 8:
            cluster.kill()
        return answer(self, *args, **options)

    with monkeypatch.context() as context:
        context.setattr(Curator, "answer", breaks)
        with pytest.raises(KeyboardInterrupt):
            fitted(store, "here")
    here, answered[:] = fitted(store, "here"), []
    try:
        while not address.exists():
            assert cluster.poll() is None
            time.sleep(0.1)
        client = distributed.Client(address.read_text(), timeout=10)
        with (
            dask.config.set({"distributed.comm.timeouts.connect": "3s"}),
            monkeypatch.context() as context,
        ):
            context.setattr(Curator, "answer", kills)
            with pytest.raises(PrivacyError, match=r"a scheduler that answers|an answer"):
                fitted(DaskRows(client, store, shards=2, patience=20.0), "kept", ledger)
        client.close()
    finally:
        cluster.kill()
        cluster.wait()
    assert len(answered) == 8
    assert ledger.balance().spent > 0
    with DaskRows(None, store, shards=3) as rows:
        again = fitted(rows, "kept", ledger)
    assert again.coef_.tobytes() == here.coef_.tobytes()
    assert again.privacy_.events == here.privacy_.events == again.privacy_.plan
    balance = ledger.balance()
    assert (balance.open, balance.committed) == (0, 1)
    assert balance.spent <= again.privacy_.epsilon * (1 + 1e-6)


def test_what_is_no_cluster_is_refused(store: Any) -> None:
    with pytest.raises(InputError, match="a client of a cluster"):
        DaskRows(3, store)
