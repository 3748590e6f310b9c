"""The faults of plant.py can be planted: a step that moves code carries them along."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from plant import ROOT, Copy, Fault, faults


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: f"{fault.room}/{fault.name}")
def test_a_fault_can_be_planted(fault: Fault) -> None:
    assert fault.wrong() == ""
    assert fault.breaks
    assert any((ROOT / test).exists() for test in fault.near)


def test_there_are_two_hundred_faults_with_names_of_their_own() -> None:
    names = Counter(fault.name for fault in faults())
    assert len(names) >= 200
    assert max(names.values()) == 1


def test_a_planted_fault_is_put_back_with_what_was_compiled(tmp_path: Path) -> None:
    (tmp_path / "root/src/pkg/__pycache__").mkdir(parents=True)
    room = tmp_path / "root/src/pkg"
    (room / "low.py").write_text("@jit\ndef f(): return 1\n")
    (room / "high.py").write_text("from .low import f\n")
    (room / "aside.py").write_text("x = 1\n")
    for name in ("low", "high", "aside"):
        (room / f"__pycache__/{name}.f-1.py311.nbi").write_text("kept")
    copy = Copy(tmp_path / "root", tmp_path / "copy")
    place = tmp_path / "copy/src/pkg"
    fault = Fault("room", "name", "src/pkg/low.py", "return 1", "return 2", "it", ("tests",), ())
    copy.plant(fault)
    assert (place / "low.py").read_text() == "@jit\ndef f(): return 2\n"
    assert [file.name for file in (place / "__pycache__").iterdir()] == ["aside.f-1.py311.nbi"]
    (place / "__pycache__/high.f-1.py311.nbi").write_text("of the fault")
    copy.restore(fault)
    assert (place / "low.py").stat().st_mtime_ns == (room / "low.py").stat().st_mtime_ns
    kept = {file.name: file.read_text() for file in (place / "__pycache__").iterdir()}
    assert kept == {f"{name}.f-1.py311.nbi": "kept" for name in ("low", "high", "aside")}
