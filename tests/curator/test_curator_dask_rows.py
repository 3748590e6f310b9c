"""Rows on a dask cluster: the guarantees of `distributed/dask_rows.py`. One cluster of this machine for all tests."""

from __future__ import annotations

import io
import logging
import os
import signal
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shard_samples import PLANTED, SCHEMA, Wrong, answers, rows_of, same, table, written

import fairveil as fv
from fairveil import data
from fairveil.curator import Curator, RowCount, Rows
from fairveil.distributed import DaskRows, local_cluster
from fairveil.distributed.dask_rows import DaskShards, require_private
from fairveil.errors import FairveilError, InputError, PrivacyError
from fairveil.privacy import Promise

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore")  # an engine's own, of sockets and tasks of clusters that end


@pytest.fixture(scope="module")
def client() -> Any:
    """Two workers of this machine, which a nanny starts again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cluster = local_cluster(2)
        client = distributed.Client(cluster)
        yield client
        client.close()
        cluster.close()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Rows on the disk."""
    return written(tmp_path_factory.mktemp("rows"), "store")


def test_guarantee_1_the_same_bits_though_workers_are_killed(client: Any, store: Any) -> None:
    source = DaskRows(client, store, shards=4)
    shards = source.shards()
    killed: list[int] = []

    def kill() -> None:
        if not killed:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    assert same(answers(rows_of(shards), between=kill), answers(Rows(data.encode(table(), SCHEMA))))
    assert killed


def test_guarantee_1_fits_are_those_of_rows_in_memory(client: Any, store: Any) -> None:
    clf = fv.RateConstrainedClassifier("demographic_parity:0.1", epsilon=2.0, random_state=0)
    here = clf.fit(data.encode(table(), SCHEMA)).coef_
    assert np.array_equal(clf.fit(DaskRows(client, store)).coef_, here)
    assert clf.privacy_.epsilon <= 2.0


def test_guarantee_2_beyond_this_machine_tls_is_demanded() -> None:
    for address in ("tls://10.0.0.1:8786", "tcp://127.0.0.1:8786", "tcp://[::1]:1", "inproc://a/1", "localhost:8786"):
        require_private(address, trust_network=False)
    for address in ("tcp://10.0.0.1:8786", "scheduler:8786", "ws://example.org", "tcp://0.0.0.0:1", "tcp://127.example.org"):
        with pytest.raises(PrivacyError, match="TLS beyond this machine"):
            require_private(address, trust_network=False)
        with pytest.raises(PrivacyError):
            DaskRows(address, "nowhere.store")  # refused before anything is connected
        require_private(address, trust_network=True)


def test_guarantee_3_nothing_that_the_engine_keeps_shows_a_row(client: Any, tmp_path: Path) -> None:
    heard = io.StringIO()
    handler = logging.StreamHandler(heard)
    logging.getLogger().addHandler(handler)
    try:
        with pytest.raises(FairveilError) as error:
            rows_of(DaskShards(client, [Wrong(str(tmp_path))], threads=1, patience=60.0))
    finally:
        logging.getLogger().removeHandler(handler)
    seen = [f"{error.value!r} {error.value} {error.value.__context__!r}", heard.getvalue()]
    seen += [str(client.get_scheduler_logs()), str(client.get_worker_logs())]
    seen += [str(client.run_on_scheduler(_state)), str(client.get_events())]
    assert not any(PLANTED in one for one in seen)
    assert "fairveil-shard-0" in seen[-2]  # it was looked at where tasks are


def _state(dask_scheduler: Any) -> list[str]:
    """All that the scheduler knows of tasks, which is what its dashboard draws."""
    tasks = dask_scheduler.tasks.values()
    return [f"{task!r} {task.exception!r} {task.traceback!r} {task.exception_text} {task.traceback_text}" for task in tasks]


def test_a_scheduler_that_ends_ends_the_fit_and_what_was_spent_stays(store: Any) -> None:
    cluster = local_cluster(1)
    client = distributed.Client(cluster)
    try:
        shards = DaskShards(client, DaskRows(client, store, shards=1).pieces, threads=1, patience=20.0)
        curator = Curator(rows_of(shards), Promise(5.0, 1e-6))
        curator.answer([(RowCount(), 9.0)])
        cluster.close()
        with pytest.raises(PrivacyError, match=r"a scheduler that answers|an answer"):
            curator.answer([(RowCount(), 9.0)])
        assert curator.statement().epsilon > 0
        assert len(curator.log) == 1
    finally:
        client.close()
        cluster.close()


def test_what_is_no_cluster_is_refused(store: Any) -> None:
    with pytest.raises(InputError, match="a client of a cluster"):
        DaskRows(3, store)
