"""A round on many machines, put together from the recorded times of its shards.

No such cluster is at hand. M shards of one store are asked one after another, each by one thread,
in processor time. The network is supposed: .5 ms a message, and 1 Gbit/s at the driver, which sends
M requests and receives M answers one after another. Every worker has its own machine, so what
workers do happens at once, and the slowest counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import fairveil as fv
from fairveil.curator import Curator, Measurement
from fairveil.curator.rows.sharded import ShardedRows, Taking, Total
from fairveil.curator.shards.here import ShardsHere
from fairveil.curator.shards.shard import Shard, packed, unpacked
from fairveil.data import Store
from fairveil.data.pieces import pieces_of

LATENCY, BANDWIDTH = 0.5e-3, 125e6  # seconds a message, bytes a second at the driver
REPEATS = 5
EXTRAPOLATED = 1e9  # rows of the second column


def round_of(store: Store, machines: int, measurements: list[Measurement], rows: int) -> None:
    """Print the stages of a round, in their order: the critical path."""
    _, pieces = pieces_of(store, shards=machines)
    taking = Taking(store.layout)
    request = Total(
        tuple(
            (measurement.question, (measurement.question.scale(store.layout, None),))
            for measurement in measurements
        )
    )
    shards, answers = [], []
    message = packed(request)
    packing, unpacking = _least(lambda: packed(request)), _least(lambda: unpacked(message))
    for piece in pieces:
        shard = Shard(piece, threads=1)
        shard.take(taking)
        shard.answer(request)  # compiled, and in the page cache
        shards.append(_least(lambda shard=shard: shard.answer(request)))
        answers.append(packed(shard.answer(request)))
    first = unpacked(answers[0])
    answering = _least(lambda: packed(first))
    adding = _least(lambda: _added(answers))
    held = ShardedRows(ShardsHere(pieces[:1], 1), taking, store)
    noisy = [Measurement(measurement.question, 1.0) for measurement in measurements]
    curator = Curator(held, fv.Promise(float("inf"), 0.0))
    alone = _least(lambda: curator.answer(noisy)) - shards[0]
    sent, came = len(message) * len(pieces), sum(map(len, answers))
    slowest = max(shards)
    stages = [
        ("driver: pack the request, once", packing),
        ("network: requests to all machines", LATENCY + sent / BANDWIDTH),
        ("worker: unpack the request", unpacking),
        ("worker: the slowest shard", slowest),
        ("worker: pack the answer", answering),
        ("network: answers of all machines", LATENCY + came / BANDWIDTH),
        ("driver: unpack and add all answers", adding),
        ("driver: noise, price, log", max(0.0, alone)),
    ]
    each = rows / len(pieces)
    factor = EXTRAPOLATED / rows
    more = [seconds * factor if "slowest" in name else seconds for name, seconds in stages]
    whole = sum(seconds for _, seconds in stages)
    told = f"{min(shards) * 1e3:.2f} to {slowest * 1e3:.2f} ms, mean {np.mean(shards) * 1e3:.2f}"
    size = came // len(pieces)
    print(f"{len(pieces)} machines; shards take {told};")
    print(f"a request has {len(message)} B, an answer {size} B")
    print()
    print("| stage, in order | ms | share | extrapolated, ms | share |")
    print("|---|---|---|---|---|")
    for (name, seconds), extrapolated in zip(stages, more, strict=True):
        shares = (
            f"{seconds / whole:.0%} | {extrapolated * 1e3:.2f} | {extrapolated / sum(more):.0%}"
        )
        print(f"| {name} | {seconds * 1e3:.2f} | {shares} |")
    print(f"| rows a machine | {each:.2e} | | {EXTRAPOLATED / len(pieces):.2e} | |")
    print(f"| a round | {whole * 1e3:.2f} | | {sum(more) * 1e3:.2f} | |")


def _added(answers: list[bytes]) -> list[Any]:
    out: list[Any] = []
    for answer in answers:
        found = unpacked(answer)
        out = (
            [one.copy() for one in found]
            if not out
            else [a + b for a, b in zip(out, found, strict=True)]
        )
    return out


def _least(work: Callable[[], object]) -> float:
    """Processor seconds, the least of some runs."""
    found = []
    for _ in range(REPEATS):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)
