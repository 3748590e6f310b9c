"""What is loaded by `import fairveil` and by `fairveil --help`: nothing heavy."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = frozenset(
    (
        *(
            "numpy",
            "scipy",
            "sklearn",
            "numba",
            "llvmlite",
            "dp_accounting",
            "randomgen",
            "narwhals",
            "pydantic",
            "jinja2",
        ),
        *("rich", "torch", "pandas", "polars", "pyarrow", "duckdb", "sqlalchemy", "matplotlib"),
    )
)
HELP = """
from fairveil.cli import main
sys.argv = ["fairveil", *arguments]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
"""


def test_importing_the_library_loads_nothing_heavy() -> None:
    assert not _loaded("import fairveil") & HEAVY


def test_a_public_name_loads_its_own_module_and_no_more() -> None:
    assert (
        not _loaded(
            "import fairveil, fairveil.core.events as events; fairveil.Promise(1.0, 1e-6); events.Gaussian(2.0)"
        )
        & HEAVY
    )


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_the_frame_loads_nothing_heavy(arguments: list[str]) -> None:
    assert not _loaded(f"arguments = {arguments!r}\n{HELP}") & HEAVY


@pytest.mark.parametrize(
    "command", ["fit", "predict", "audit", "frontier", "verify", "demo", "serve", "ledger"]
)
def test_a_commands_help_loads_nothing_heavy(command: str) -> None:
    assert not _loaded(f"arguments = {[command, '--help']!r}\n{HELP}") & HEAVY


def test_the_measurement_sees_a_heavy_import() -> None:
    assert "numpy" in _loaded("import fairveil, numpy") & HEAVY


def _loaded(code: str) -> frozenset[str]:
    program = f"import sys\n{code}\nprint('LOADED', *sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return frozenset(name.split(".")[0] for name in done.stdout.rpartition("LOADED ")[2].split())
