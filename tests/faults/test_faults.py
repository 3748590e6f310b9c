"""The faults of plant.py can be planted: a step that moves code carries them along."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from plant import ROOT, Copy, Fault, Trace, faults, functions_changed


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
    fault = Fault("room", "name", "src/pkg/low.py", "return 1", "return 2", "it", ("tests",))
    copy.plant(fault)
    assert (place / "low.py").read_text() == "@jit\ndef f(): return 2\n"
    assert [file.name for file in (place / "__pycache__").iterdir()] == ["aside.f-1.py311.nbi"]
    (place / "__pycache__/high.f-1.py311.nbi").write_text("of the fault")
    copy.restore(fault)
    assert (place / "low.py").stat().st_mtime_ns == (room / "low.py").stat().st_mtime_ns
    kept = {file.name: file.read_text() for file in (place / "__pycache__").iterdir()}
    assert kept == {f"{name}.f-1.py311.nbi": "kept" for name in ("low", "high", "aside")}


def test_a_fault_is_found_in_the_functions_of_a_file_alone() -> None:
    old = (
        "K = 1\n\nclass A:\n    def f(self):\n        return lambda: 2\n\ndef g():\n    return K\n"
    )
    space: dict[str, Any] = {}
    exec(compile(old, "file.py", "exec"), space)
    found = functions_changed(old, old.replace("2", "3"), "file.py")
    assert found is not None
    assert [was.co_qualname for was, _ in found] == ["A.f"]
    assert found[0][0] == space["A"].f.__code__
    space["A"].f.__code__ = found[0][1]
    assert space["A"]().f()() == 3
    assert (
        functions_changed(old, "\n\n" + old, "file.py") == []
    )  # it stands elsewhere, and is the same
    assert functions_changed(old, old.replace("1", "4"), "file.py") is None
    assert functions_changed(old, old.replace("self", "self, x=1"), "file.py") is None


def test_tests_near_a_fault_are_one_of_each_kind_and_about_it_first(tmp_path: Path) -> None:
    fault = next(fault for fault in faults() if fault.name == "gap-one-sided")
    here, other = "src/fairveil/fairness/notions.py:_compared", "src/fairveil/errors.py:x"
    lines = [
        ["t.py::a[1]", 2.0, "", [here]],
        ["t.py::a[2]", 1.0, "", [here]],
        ["t.py::b[row]", 3.0, "row", [here, other]],
        ["t.py::c[row]", 0.5, "row", []],  # it looks at the fit of b
        ["t.py::d", 0.1, "", [other]],
    ]
    (tmp_path / "trace").write_text("\n".join(json.dumps(line) for line in lines))
    trace = Trace(tmp_path / "trace")
    chosen = ["t.py::a[2]", "t.py::b[row]", "t.py::c[row]", "t.py::a[1]"]
    assert trace.chosen(fault, 60.0) == chosen
    assert trace.chosen(fault, 3.5) == ["t.py::a[2]", "t.py::c[row]", "t.py::a[1]"]
