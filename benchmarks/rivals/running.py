"""One process a fit: its rows in a file, its decisions in another, its seconds and its memory from
the system."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from frontier.methods import dense
from frontier.splits import Coded
from hard import stored
from hard.cases import CASES, PARITY, Case
from hard.measured import table_of

from .systems import OURS, SYSTEMS, System

HERE = Path(__file__).resolve().parent
FIELD = (
    "adult-parity",
    "adult-odds",
    "adult-race",
    "law-race",
    "credit-education",
    "communities",
    "four-groups",
    "small",
    "nine-groups",
)
"""The cases of the field: every set at hand, by two groups and by many, and synthetic people."""
BOUNDS = {
    "adult-parity": 0.05,
    "adult-odds": 0.05,
    "adult-race": 0.05,
    "law-race": 0.05,
    "nine-groups": 0.1,
}
"""Where it is not the tightest of the case."""


@dataclass(frozen=True)
class Wanted:
    """The axes of a run. `limit`: seconds of one fit."""

    cases: Sequence[str]
    systems: Sequence[str]
    epsilon: float
    seeds: Sequence[int]
    pythons: dict[str, str]
    folder: str | None = None
    most: int | None = None
    limit: float = 600.0


def run(wanted: Wanted, file: Path | None = None) -> list[stored.Run]:
    """All runs that are asked for, seed by seed; those that the file lacks are fitted, and appended
    to it."""
    before = {stored.key_of(one): one for one in stored.read(file)}
    found = []
    for seed in wanted.seeds:
        for name in wanted.cases:
            case = CASES[name]
            told = [_told(wanted, case, SYSTEMS[system], seed) for system in wanted.systems]
            missing = [one for one in told if stored.key_of(one) not in before]
            for one in _fitted(wanted, case, seed, missing) if missing else ():
                # else another run may name it
                if SYSTEMS[one["method"]].python in (OURS, *wanted.pythons):
                    stored.append(file, [one])
                before[stored.key_of(one)] = one
            found += [before[stored.key_of(one)] for one in told if stored.key_of(one) in before]
    return found


def asked_of(case: Case) -> tuple[str, float]:
    """The one notion and bound of a case in the field."""
    notion, bounds = case.asked[0]
    return notion, BOUNDS.get(case.name, bounds[-1])


def _told(wanted: Wanted, case: Case, system: System, seed: int) -> stored.Run:
    notion, bound = asked_of(case)
    return {
        "case": case.name,
        "method": system.name,
        "notion": notion,
        "asked": bound,
        "epsilon": wanted.epsilon,
        "protects": system.protects,
        "seed": seed,
        "most": wanted.most,
        "knobs": "",
    }


def _fitted(
    wanted: Wanted, case: Case, seed: int, missing: list[stored.Run]
) -> Iterator[stored.Run]:
    train, test = case.parts(seed, wanted.folder, wanted.most)
    cells = case.cells(train)
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.npz"
        _write(rows, train, test)
        for one in missing:
            system = SYSTEMS[one["method"]]
            found = _refused(system, case, train) or _measured(
                wanted, case, system, one, Path(folder)
            )
            law = found.pop("law", None)
            if law is not None:
                found["table"] = np.round(table_of(law, test, cells), 4).tolist()
            told = {
                **one,
                "constraint": case.constraint(*asked_of(case)),
                "rows": train.block.rows,
                **found,
            }
            said = told.get("failed") or f"{told['seconds']:.1f} s"
            print(f"{case.name} {system.name} seed {seed}: {said}", file=sys.stderr, flush=True)
            yield told


def _refused(system: System, case: Case, train: Coded) -> dict[str, Any] | None:
    """Why a system cannot be asked at all."""
    if len(train.layout.classes or ()) > 2 and not system.many_classes:
        return {"failed": "two classes only"}
    if system.two_groups and math.prod(len(values) for values in train.layout.sensitive) > 2:
        return {"failed": "two groups only"}
    if system.parity_only and asked_of(case)[0] != PARITY:
        return {"failed": "demographic parity only"}
    return None


def _measured(
    wanted: Wanted, case: Case, system: System, told: stored.Run, folder: Path
) -> dict[str, Any]:
    python = sys.executable if system.python == OURS else wanted.pythons.get(system.python)
    if python is None:
        return {"failed": f"no Python was named for {system.python}"}
    notion, bound = asked_of(case)
    out = folder / "out.npz"
    job = {
        "system": system.name,
        "after": system.after,
        "case": case.name,
        "notion": notion,
        "bound": bound,
        "epsilon": wanted.epsilon,
        "seed": told["seed"],
        "rows": str(folder / "rows.npz"),
        "out": str(out),
        "folder": wanted.folder,
        "most": wanted.most,
        "aim": python if system.fit == "aim" else None,
    }
    said: dict[str, Any] = {"seconds": 0.0, "cpu": 0.0, "mebibytes": 0.0}
    for program in _programs(system):
        theirs = program.parent.name == "theirs"
        what = folder / "job.json"
        what.write_text(json.dumps(job), "utf-8")
        with_ours = [str(HERE.parent), str(HERE.parent.parent / "src")]
        path = "" if theirs and system.python != OURS else os.pathsep.join(with_ours)
        took = _process(
            [python if theirs else sys.executable, str(program), str(what)], path, wanted.limit
        )
        said["seconds"] += took["seconds"]
        said["cpu"] += took["cpu"]
        said["mebibytes"] = max(said["mebibytes"], took["mebibytes"])
        if "failed" in took:
            return {**said, "failed": took["failed"]}
        with np.load(out) as found:
            said |= json.loads(str(found["said"]))
            law = found.get("law")
        if law is not None:
            said["law"] = law
    return {**said, "seconds": round(said["seconds"], 2), "cpu": round(said["cpu"], 2)}


def _programs(system: System) -> list[Path]:
    if not system.fit.endswith(".py"):
        return [HERE / "ours.py"]
    return [HERE / "theirs" / system.fit, *([HERE / "after.py"] if system.after else [])]


def _process(command: list[str], path: str, limit: float) -> dict[str, Any]:
    """Run to its end or its limit. `seconds` of the wall, `cpu` of the processor; memory is the
    process's own peak."""
    environment = {
        **os.environ,
        "PYTHONPATH": path,
        "OMP_NUM_THREADS": "1",
        "PYTHONWARNINGS": "ignore",
    }
    with tempfile.TemporaryFile() as heard:
        start = time.perf_counter()
        child = subprocess.Popen(
            command, env=environment, stdout=heard, stderr=heard, start_new_session=True
        )
        ended, status, used, peak, looked = 0, 0, None, 0.0, start
        while not ended:
            peak = max(peak, _peak(child.pid))
            if time.perf_counter() - looked > 2.0:
                peak, looked = max([peak, *map(_peak, _begun_by(child.pid))]), time.perf_counter()
            ended, status, used = os.wait4(child.pid, os.WNOHANG)
            seconds = time.perf_counter() - start
            if not ended and seconds > limit:
                os.killpg(child.pid, signal.SIGKILL)  # whoever it began, too
                ended, status, used = os.wait4(child.pid, 0)
                child.returncode = -9
                return {"failed": f"over {limit:g} s", "seconds": seconds, **_used(used, peak)}
            time.sleep(0 if ended else 0.02)
        child.returncode = os.waitstatus_to_exitcode(status)
        heard.seek(0)
        last = heard.read().decode("utf-8", "replace").strip().splitlines()[-1:]
    assert used is not None
    took: dict[str, Any] = {"seconds": seconds, **_used(used, peak)}
    if child.returncode:
        took["failed"] = (last or [f"exit {child.returncode}"])[0][:200]
    return took


def _peak(process: int) -> float:
    """The most memory that a process has held so far, in KiB; 0 where the system does not say.
    `wait4` will not do: it counts what the parent held when the process was begun."""
    try:
        lines = Path(f"/proc/{process}/status").read_text("utf-8").splitlines()
    except OSError:
        return 0.0
    return float(next((line.split()[1] for line in lines if line.startswith("VmHWM:")), 0.0))


def _begun_by(process: int) -> list[int]:
    """Processes of the session that a process leads."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            session = int(entry.read_text("utf-8", "replace").rpartition(")")[2].split()[3])
        except (OSError, IndexError):
            continue
        if session == process:
            found.append(int(entry.parent.name))
    return found


def _used(used: Any, peak: float) -> dict[str, float]:
    return {
        "cpu": used.ru_utime + used.ru_stime,
        "mebibytes": round((peak or used.ru_maxrss) / 1024),
    }


def _write(file: Path, train: Coded, test: Coded) -> None:
    """Both parts as arrays that any library takes: one-hot rows, coded columns, labels and groups
    as whole numbers."""
    arrays: dict[str, Any] = {}
    for name, part in (("train", train), ("test", test)):
        block = part.block
        assert block.sensitive is not None
        groups = np.ravel_multi_index(
            tuple(block.sensitive), tuple(len(values) for values in part.layout.sensitive)
        )
        arrays |= {f"{name}_X": dense(part), f"{name}_y": block.labels, f"{name}_groups": groups}
        arrays |= {f"{name}_numbers": block.numbers.T, f"{name}_codes": block.codes.T}
    np.savez(file, **arrays)
