"""The contract of the command line: statuses, files whole or not at all, one line of the ledger for
one release, no cell in a message, and the same numbers as Python.

Commands run in this process; where a signal or a stream is at stake, in one of their own."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import io
import json
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import configurations
import numpy as np
import pandas as pd
import pytest
import seam
from observing import files

import fairveil as fv
import ways
from fairveil import cli
from fairveil.core.events import Pure

COLUMNS = (*configurations.FEATURES, "sex", "hired", "person")
CONSTRAINT = ("--constraint", "demographic_parity:0.3")
SCHEMA = ("--schema", "people.toml")
MADE = ("--target", "hired", "--prediction", "prediction", "--sensitive", "sex")
METHODS: dict[str, tuple[str, ...]] = {
    "primal-dual": CONSTRAINT,
    "post-processing": CONSTRAINT,
    "oracle-game": CONSTRAINT,
    "group-objective": CONSTRAINT,
    "fermi": (),
    "tailored": (),
}
MECHANISMS = """
import numpy as np

def kept(table, seed, epsilon):
    return len(table["sex"]) + np.random.default_rng(seed).laplace() / epsilon

def broken(table, seed):
    return len(table["sex"])
"""


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str


def fairveil(*words: object) -> Done:
    """A command, in this process and folder."""
    streams = [io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in "ab"]
    before, code = sys.argv, 0
    sys.argv = ["fairveil", *map(str, words)]
    try:
        with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
            cli.main()
    except SystemExit as ended:
        code = int(ended.code or 0)
    finally:
        sys.argv = before
    out, err = (one.buffer.getvalue().decode() for one in streams)  # type: ignore[attr-defined]
    return Done(code, out, err)


def write(path: Path, table: configurations.Table, **cells: dict[int, str]) -> None:
    """The table as CSV, with these cells in place of its own."""
    columns = {name: table[name].astype(str).astype(object) for name in COLUMNS}
    for name, changed in cells.items():
        for row, text in changed.items():
            columns[name][row] = text
    with path.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(COLUMNS)
        lines.writerows(zip(*columns.values(), strict=True))


def furnish(folder: Path) -> None:
    """A table, its schema, mechanisms to attack, and a statement of something else."""
    table = configurations.people()
    write(folder / "people.csv", table)
    configurations.schema_of("hired", ("sex",), rows=configurations.ROWS).save(
        folder / "people.toml"
    )
    frame = pd.DataFrame({name: table[name] for name in COLUMNS})
    # nobody is hired, whatever a noisy model decides
    frame.assign(prediction="no").to_csv(folder / "denied.csv", index=False)
    (folder / "mechanisms_of_mine.py").write_text(MECHANISMS)
    schema = fv.Schema.load(folder / "people.toml")
    fv.Ledger.create(folder / "served.db", "people", 9.0, 1e-5, schema=schema).close()
    (folder / "holder.toml").write_text(
        '[door]\nname = "Office"\nfolder = "door"\n[datasets.people]\nrows = "people.csv"\n'
        'schema = "people.toml"\nledger = "served.db"\n'
    )
    elsewhere = fv.PrivacyStatement.of(fv.Promise(1.0, 1e-6), [Pure(0.5)])
    (folder / "elsewhere.json").write_text(elsewhere.to_json())


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A folder of one's own with the table, and the commands run there."""
    furnish(tmp_path)
    with inside(tmp_path):
        yield tmp_path


@dataclass(frozen=True)
class Step:
    """A command of the walk. `makes`: what is new in the folder then, and nothing else."""

    words: tuple[object, ...]
    code: int = 0
    makes: tuple[str, ...] = ()
    charges: int = 0  # lines of the ledger
    out: bool = False  # the last word of `words` names what it writes

    @property
    def name(self) -> str:
        return " ".join(str(word) for word in self.words[:2])


def _walk() -> dict[str, Step]:
    S = Step
    ledger = ("--ledger", "budget.db")
    cheap = ("--epsilon", 0.5, *ledger)
    mine = ("--schema", "people.toml", "--epsilon", 1, "--delta", 0, "--trials", 50)
    begin = (*CONSTRAINT, "--group", "sex:f,m", "--classes", "no,yes", "--epsilon", 1)
    counted = ("decided.csv", "--period", "May", "--prediction", "prediction")
    holder = ("--config", "holder.toml")
    certified = ("certify", "model", "people.csv", "--constraint")
    audited = ("audit", "decided.csv", *MADE)
    compared = ("lda", "decided.csv", *MADE, "--tolerance", 0.9, "--candidate")
    draft = ("schema", "init", "people.csv", "--target", "hired", "--sensitive", "sex", "--out")
    budget = ("budget.db", "people", "--epsilon", 9, "--delta", 1e-5)
    return {
        "ledger create": S(("ledger", "create", *budget), makes=("budget.db",)),
        "schema init": S((*draft, "draft.toml"), makes=("draft.toml",), out=True),
        "schema check": S(("schema", "check", "people.toml", "people.csv")),
        "schema check: blanks": S(("schema", "check", "draft.toml"), 1),
        "plan": S(("plan", *SCHEMA, "--constraint", "demographic_parity:0.9", "--epsilon", 9)),
        "plan: no": S(("plan", *SCHEMA, "--constraint", "demographic_parity:0.01"), 1),
        "plan: file": S(
            (
                "plan",
                *SCHEMA,
                "--constraint",
                "demographic_parity:0.9",
                "--epsilon",
                9,
                "--out",
                "plan.json",
            ),
            makes=("plan.json",),
            out=True,
        ),
        "fit": S(
            ("fit", "people.csv", *SCHEMA, *CONSTRAINT, *cheap, "--out", "model"),
            makes=("model",),
            charges=1,
            out=True,
        ),
        "fit: a refusal": S(("fit", "people.csv", *SCHEMA, "--epsilon", "x", "--out", "no"), 2),
        "fit: a search": S(
            (
                "fit",
                "people.csv",
                *SCHEMA,
                *CONSTRAINT,
                *cheap,
                "--grid",
                "clip=0.5,2",
                "--set",
                "way=all",
                "--out",
                "tuned",
            ),
            makes=("tuned",),
            charges=1,
            out=True,
        ),
        "predict": S(
            (
                "predict",
                "model",
                "people.csv",
                "--keep",
                "sex",
                "--keep",
                "hired",
                "--out",
                "decided.csv",
            ),
            makes=("decided.csv",),
            out=True,
        ),
        "audit": S((*audited, "--constraint", "demographic_parity:0.99")),
        "audit: no": S((*audited, "--constraint", "error_rate_parity:0.00001"), 1),
        "attack": S(("attack", "mechanisms_of_mine:kept", *mine)),
        "attack: no": S(("attack", "mechanisms_of_mine:broken", *mine), 1),
        "reproduce": S(("reproduce", "004:accountant"), 2),  # not in a clone
        "certify": S(
            (
                *certified,
                "demographic_parity:0.99",
                "--epsilon",
                2,
                *ledger,
                "--out",
                "certificate.json",
            ),
            makes=("certificate.json",),
            charges=1,
            out=True,
        ),
        "certify: no": S((*certified, "demographic_parity:0.001", *cheap), 1, charges=1),
        "lda": S((*compared, "same=prediction", *cheap), 1, charges=1),
        "lda: record": S(
            (
                *compared,
                "truth=hired",
                "--epsilon",
                90,
                "--plan",
                "lda.json",
                "--out",
                "record.json",
            ),
            1,
            makes=("lda.json", "record.json"),
            out=True,
        ),
        "monitor": S(
            ("monitor", "monitor.json", *begin, *ledger), makes=("monitor.json",), charges=1
        ),
        "monitor: period": S(("monitor", "monitor.json", *counted)),
        "monitor: a ledger too late": S(("monitor", "monitor.json", *ledger), 2),
        "monitor: begin strict": S(
            (
                "monitor",
                "strict.json",
                "--constraint",
                "false_negative_rate:0.01",
                "--group",
                "sex:f,m",
                "--classes",
                "no,yes",
                "--epsilon",
                90,
            ),
            makes=("strict.json",),
        ),
        "monitor: no": S(
            ("monitor", "strict.json", "denied.csv", *counted[1:], "--target", "hired"), 1
        ),
        "frontier": S(
            (
                "frontier",
                "people.csv",
                *SCHEMA,
                "--gaps",
                0.3,
                "--epsilons",
                0.5,
                *ledger,
                "--out",
                "sweep",
            ),
            makes=("sweep",),
            charges=1,
            out=True,
        ),
        "release-groups": S(
            ("release-groups", "people.csv", *SCHEMA, "--epsilon", 0.5, "--out", "released.json"),
            makes=("released.json",),
            out=True,
        ),
        "verify": S(("verify", "model/statement.json")),
        "sign: keys": S(("sign", "--new-key", "holder.key"), makes=("holder.key", "holder.pub")),
        "sign": S(("sign", "model", "--key", "holder.key")),
        "verify: signed": S(("verify", "model", "--key", "holder.pub")),
        "verify: no": S(("verify", "tuned", "--key", "holder.pub"), 1),
        "export": S(("export", "model", "--out", "model.sql"), makes=("model.sql",), out=True),
        "export: a card": S(("export", "model", "--out", "card.md"), makes=("card.md",), out=True),
        "serve": S(("serve", *holder, "--check"), makes=("door",)),
        "serve: a token": S(("serve", *holder, "--issue", "somebody")),
        "serve: lists": S(("serve", *holder, "--list")),
        "serve: revoke": S(("serve", *holder, "--revoke", "nothing"), 2),
        "serve: stop": S(("serve", *holder, "--stop", "nothing"), 2),
        "ledger show": S(("ledger", "show", "budget.db")),
        "ledger check": S(("ledger", "check", "budget.db", "--statement", "model")),
        "ledger check: no": S(("ledger", "check", "budget.db", "--statement", "elsewhere.json"), 1),
        "demo": S(("demo", "--path", "people.csv"), 2),
    }


WALK = _walk()
PASSING = ("-wal", "-shm", ".lock", "__pycache__")  # of SQLite, of monitors, of Python
WRITERS = [name for name, step in WALK.items() if step.out]


@dataclass
class Walked:
    folder: Path
    done: dict[str, Done] = field(default_factory=dict)
    made: dict[str, set[str]] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)


def spends(path: Path) -> list[str]:
    """The spends of the ledger, each once."""
    if not path.exists():
        return []
    ledger = fv.Ledger.open(path)
    try:
        return sorted({entry.spend for entry in ledger.history() if entry.spend})
    finally:
        ledger.close()


def kept(folder: Path) -> dict[str, str]:
    """Every file of the folder by its bytes, but those of the ledger's database."""
    return {name: text for name, text in files(folder).items() if not name.startswith("budget.db")}


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Walked:
    """Every command once, in one folder."""
    folder = tmp_path_factory.mktemp("walk")
    furnish(folder)
    out = Walked(folder)
    with inside(folder):
        for name, step in WALK.items():
            before, lines = set(os.listdir()), spends(folder / "budget.db")
            out.done[name] = fairveil(*step.words)
            new = set(os.listdir()) - before
            out.made[name] = {one for one in new if not one.endswith(PASSING)}
            out.lines[name] = len(set(spends(folder / "budget.db")) - set(lines))
    return out


@pytest.mark.parametrize("name", WALK)
def test_a_command_ends_as_its_page_says_and_makes_what_it_says(name: str, walked: Walked) -> None:
    """Status 0, 1 for "the answer is no", 2 for a refusal, which is two lines and writes nothing."""
    step, done = WALK[name], walked.done[name]
    assert done.code == step.code, (done.out, done.err)
    assert walked.made[name] == set(step.makes)
    assert "Traceback" not in done.out + done.err
    if step.code == 2:
        assert done.out == ""
        assert [line.split(":")[0] for line in done.err.splitlines()] == ["error", "hint"]
    elif not name.startswith("schema check"):  # whose answer is a list of errors
        assert "error:" not in done.err


@pytest.mark.parametrize("name", WALK)
def test_a_release_is_one_line_of_the_ledger_and_nothing_else_is(name: str, walked: Walked) -> None:
    assert walked.lines[name] == WALK[name].charges, walked.done[name].out


def test_a_line_of_the_ledger_is_what_the_statement_says(walked: Walked) -> None:
    for name in ("model", "tuned", "sweep"):
        told = statement_of(walked.folder / name)
        assert told.ledger is not None
        assert 0 < told.epsilon <= 0.5 + 1e-9
        ledger = fv.Ledger.open(walked.folder / "budget.db")
        assert ledger.standing(told.ledger.spend).last == "committed"
        ledger.close()


def statement_of(folder: Path) -> fv.PrivacyStatement:
    return fv.PrivacyStatement.from_json((folder / "statement.json").read_text("utf-8"))


def commands() -> dict[str, Any]:
    """Every command that does something, by its words."""
    out: dict[str, Any] = {}

    def visit(command: Any, path: tuple[str, ...]) -> None:
        for name, inner in getattr(command, "commands", {}).items():
            visit(inner, (*path, name))
        if getattr(command, "callback", None) is not None:
            out[" ".join(path)] = command

    visit(cli.app, ())
    return out


def test_every_command_is_walked() -> None:
    assert set(commands()) <= {name.split(":")[0] for name in WALK}


@pytest.mark.parametrize("name", commands())
def test_every_command_has_help_with_examples(name: str) -> None:
    done = fairveil(*name.split(), "--help")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"Usage: fairveil {name}")
    examples = done.out[done.out.index("Examples:") :]
    assert f"fairveil {name} " in examples


# files: whole or not at all


@pytest.mark.parametrize("name", WRITERS)
def test_what_is_there_is_not_replaced(name: str, walked: Walked) -> None:
    """Neither what the command wrote itself, unless it is told to, nor ever a file of the user's."""
    words = WALK[name].words
    with inside(walked.folder):
        before, lines = kept(Path()), spends(Path("budget.db"))
        assert fairveil(*words).code == 2
        alien = Path("alien") / name.replace(" ", "-").replace(":", "")
        alien.mkdir(parents=True)
        (alien / "mine.txt").write_text("mine")
        assert fairveil(*words[:-1], alien, "--force").code == 2
        shutil.rmtree("alien")
        assert kept(Path()) == before
        assert spends(Path("budget.db")) == lines


@pytest.mark.parametrize("name", WRITERS)
def test_output_that_cannot_be_written_is_refused_and_costs_nothing(
    name: str, walked: Walked
) -> None:
    """Below a file, in a folder that nobody may write to, and on a disk that is full."""
    words = WALK[name].words
    with inside(walked.folder):
        before, lines = kept(Path()), spends(Path("budget.db"))
        assert fairveil(*words[:-1], "people.csv/deep").code == 2
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        bare = tuple(
            word
            for at, word in enumerate(words[:-1])
            if word != "--ledger" and (at == 0 or words[at - 1] != "--ledger")
        )
        resource.setrlimit(resource.RLIMIT_FSIZE, (20, hard))
        try:
            full = fairveil(*bare, "full")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        refused = (
            (2, 3) if name.startswith("release-groups") else (2,)
        )  # 3: it is printed, or elsewhere
        assert full.code in refused, full
        assert "Traceback" not in full.err
        assert kept(Path()) == before
        assert spends(Path("budget.db")) == lines


class _AtFirst(list[Any]):
    """Calls `action` when the first release was made."""

    def __init__(self, action: Callable[[], None]) -> None:
        super().__init__()
        self._action = action

    def append(self, item: Any) -> None:
        super().append(item)
        if len(self) == 1:
            self._action()


SPENT = ("--epsilon", 1, "--ledger", "budget.db", "--out", "model")
BEGIN = ("ledger", "create", "budget.db", "people", "--epsilon", 2, "--delta", 1e-5)


def test_a_model_whose_place_is_gone_after_the_spend_is_written_elsewhere(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Status 3; the model that was paid for is in another folder, which standard error names."""
    elsewhere = place / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    assert fairveil(*BEGIN).code == 0

    def gone() -> None:
        for staged in place.glob(".*"):
            shutil.rmtree(staged)
            staged.write_text("")

    with seam.recording() as tape:
        tape.entries = _AtFirst(gone)
        done = fairveil("fit", "people.csv", *SCHEMA, *CONSTRAINT, *SPENT)
    assert done.code == 3, done.err
    assert str(elsewhere) in done.err
    assert not (place / "model").exists()
    (found,) = [path.parent for path in elsewhere.rglob("estimator.json")]
    assert fv.load(found).privacy_.check() == []
    assert fv.load(found).privacy_.epsilon == pytest.approx(1.0, rel=1e-6)
    assert len(spends(place / "budget.db")) == 1
    assert fairveil("ledger", "check", "budget.db", "--statement", found).code == 0


def test_an_interrupted_fit_writes_nothing_and_says_what_is_charged(place: Path) -> None:
    assert fairveil(*BEGIN).code == 0
    with seam.failing(3, KeyboardInterrupt()):
        done = fairveil("fit", "people.csv", *SCHEMA, *CONSTRAINT, *SPENT)
    assert done.code == 130
    assert "the ledger charges" in done.err
    assert not (place / "model").exists()
    assert not list(place.glob(".*"))
    assert len(spends(place / "budget.db")) == 1
    assert fairveil("ledger", "check", "budget.db").code == 0


CHILD = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where it is ignored around
import seam
from fairveil import cli

class Entries(list):
    def append(self, item):
        super().append(item)
        if len(self) == 3:
            os.kill(os.getpid(), number)

number = int(sys.argv.pop())
with seam.recording() as tape:
    tape.entries = Entries()
    cli.main()
"""


def started(*words: object, code: str = CHILD, **options: Any) -> subprocess.Popen[str]:
    """A process of its own."""
    inherited = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(inherited)}
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)],
        env=environment,
        text=True,
        **({"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options),
    )


MAIN = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from fairveil import cli; cli.main()"
)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_command_that_is_stopped_in_the_middle_leaves_no_half_and_one_line(
    number: signal.Signals, place: Path
) -> None:
    """Its plan stays charged; the same command may be run again, and is then another release."""
    assert fairveil(*BEGIN).code == 0
    words = ("fit", "people.csv", *SCHEMA, *CONSTRAINT, *SPENT)
    with started(*words, int(number), code=CHILD) as process:
        out, err = process.communicate(timeout=300)
    assert process.returncode == (130 if number == signal.SIGINT else -signal.SIGKILL), err
    assert (out, "Traceback" in err) == ("", False)
    assert not (place / "model").exists()
    assert len(spends(place / "budget.db")) == 1
    with seam.failing(1, KeyboardInterrupt()):  # as far as the spend
        assert fairveil(*words).code == 130
    assert len(spends(place / "budget.db")) == 2
    assert fairveil("ledger", "check", "budget.db").code == 0


def test_a_reader_that_went_away_a_full_disk_and_a_server_that_is_told_to_stop(
    walked: Walked,
) -> None:
    with inside(walked.folder):
        decide = ("predict", "model", "people.csv")
        read, write_end = os.pipe()
        os.close(read)
        gone = started(*decide, code=MAIN, stdout=write_end)
        os.close(write_end)
        with open("/dev/full", "w") as full:
            filled = started(*decide, code=MAIN, stdout=full)
        serving = started(
            *("serve", "--config", "holder.toml", "--port", 0), code=MAIN, stderr=None
        )
        assert serving.stdout is not None
        assert any("http" in line for line in serving.stdout)
        serving.send_signal(signal.SIGINT)
        assert gone.communicate(timeout=300)[1] == ""
        assert gone.returncode == 141
        err = filled.communicate(timeout=300)[1]
        assert filled.returncode == 2
        assert [line.split(":")[0] for line in err.splitlines()] == ["error", "hint"]
        serving.communicate(timeout=300)
        assert serving.returncode == 0


# no cell in a message

SECRET = "Zzyzx-4711"
READERS: dict[str, tuple[object, ...]] = {
    "fit": ("fit", "T", *SCHEMA, *CONSTRAINT, "--out", "made"),
    "fit --grid": ("fit", "T", *SCHEMA, *CONSTRAINT, "--grid", "clip=0.5,2", "--out", "made"),
    "frontier": ("frontier", "T", *SCHEMA, "--gaps", 0.3, "--epsilons", 0.5, "--out", "made"),
    "release-groups": ("release-groups", "T", *SCHEMA, "--out", "made"),
    "certify": ("certify", "model", "T", *CONSTRAINT, "--epsilon", 1, "--out", "made.json"),
    "audit": ("audit", "T", "--model", "model", "--out", "made.html"),
    "lda": (
        *("lda", "T", "--model", "model", "--candidate", "same=model", "--tolerance", 0.1),
        *("--epsilon", 1, "--out", "made.json"),
    ),
    "predict": ("predict", "model", "T", "--out", "made"),
}
STRANGE = {
    "a word among numbers": ("age", SECRET),
    "a value that is not listed": ("job", SECRET),
    "a group that is not listed": ("sex", SECRET),
    "a cell too many": ("hired", f'yes",{SECRET},"'),
}


@pytest.mark.parametrize("kind", STRANGE)
@pytest.mark.parametrize("command", READERS)
def test_a_strange_cell_is_named_by_its_place_and_never_shown(
    command: str, kind: str, walked: Walked
) -> None:
    """Status 2 and nothing written; `predict` and `audit` read only what they need."""
    column, text = STRANGE[kind]
    with inside(walked.folder):
        lines = Path("people.csv").read_text().splitlines()
        cells = dict(zip(COLUMNS, lines[17].split(","), strict=True))
        cells[column] = text if "," not in text else f"{cells[column]},{SECRET}"
        lines[17] = ",".join(cells.values())
        Path("strange.csv").write_text("\n".join(lines) + "\n")
        before = kept(Path())
        words = READERS[command]
        done = fairveil(*("strange.csv" if word == "T" else word for word in words))
        unread = (command, column) == ("predict", "sex")
        assert done.code == (0 if unread else 2), done
        assert SECRET not in done.out + done.err
        if unread:
            Path("made").unlink()
            return
        assert kept(Path()) == before
        assert "18" in done.err if "," in text else column in done.err


# the same numbers as Python


def _objects() -> dict[str, Callable[..., Any]]:
    plain, notion = fv.FairClassifier(None), "demographic_parity:0.3"
    return {
        "primal-dual": lambda **o: ways.classifier(notion, **o),
        "post-processing": lambda **o: ways.post_processor(plain, notion, **o),
        "oracle-game": lambda **o: ways.game(notion, **o),
        "group-objective": lambda **o: ways.objective("error", notion, **o),
        "fermi": lambda **o: ways.fermi("demographic_parity", **o),
        "tailored": lambda **o: ways.tailored(**o),
    }


@pytest.fixture(scope="module")
def models(walked: Walked) -> Path:
    """One seeded model a method, by the command line."""
    with inside(walked.folder):
        for method, more in METHODS.items():
            words = (
                "--method",
                method,
                *more,
                "--epsilon",
                2,
                "--seed",
                3,
                "--out",
                f"by-{method}",
            )
            done = fairveil("fit", "people.csv", *SCHEMA, *words)
            assert done.code == 0, done.err
    return walked.folder


@pytest.mark.parametrize("method", METHODS)
def test_the_command_line_and_python_make_one_model(method: str, models: Path) -> None:
    table = configurations.people()
    schema = fv.data.Schema.load(models / "people.toml")
    frame = pd.DataFrame({name: table[name] for name in schema.columns})
    made = _objects()[method](schema=schema, epsilon=2.0, delta=1e-6, random_state=3).fit(frame)
    fv.save(made, models / f"python-{method}")
    one, other = models / f"by-{method}", models / f"python-{method}"
    with np.load(one / "arrays.npz") as arrays, np.load(other / "arrays.npz") as others:
        assert set(arrays) == set(others)
        for name in arrays:
            np.testing.assert_array_equal(arrays[name], others[name])
    statements = [json.loads((folder / "statement.json").read_text()) for folder in (one, other)]
    for name in ("epsilon", "events", "plan", "promise", "bounds", "groups"):
        assert statements[0].get(name) == statements[1].get(name), name
    facts = [{one["name"]: one["value"] for one in content["facts"]} for content in statements]
    assert facts[0] == facts[1]


def noises(event: dict[str, Any], times: int = 1) -> Iterator[tuple[float, int]]:
    if event["kind"] == "composed":
        for one in event["events"]:
            yield from noises(one, times)
    elif event["kind"] == "repeated":
        yield from noises(event["event"], times * event["count"])
    else:
        yield event["noise_multiplier"], times


def counted(pairs: Iterator[tuple[float, int]]) -> dict[float, int]:
    out: dict[float, int] = {}
    for noise, times in pairs:
        out[round(noise, 6)] = out.get(round(noise, 6), 0) + times
    return out


@pytest.mark.parametrize("method", METHODS)
def test_a_plan_is_what_the_fit_spends(method: str, models: Path) -> None:
    with inside(models):
        options = ("--method", method, *METHODS[method], "--epsilon", 2, "--json")
        told = json.loads(fairveil("plan", *SCHEMA, *options).out)
    statement = json.loads((models / f"by-{method}" / "statement.json").read_text())
    planned = ((one["noise_multiplier"], one["times"]) for one in told["releases"])
    spent = statement["plan" if method == "tailored" else "events"]  # events differ by group
    assert counted(planned) == counted(noises(spent["event"]))
    assert told["promise"]["epsilon"] == statement["promise"]["epsilon"] == 2.0


FORGED: dict[str, Callable[[dict[str, Any]], None]] = {
    "a smaller epsilon": lambda content: content.update(epsilon=content["epsilon"] * 0.9),
    "a smaller delta": lambda content: content.update(delta=content["delta"] / 10),
    "another relation": lambda content: content["accounting"].update(neighbours="replace-one"),
    "no stamp of seeded noise": lambda content: content.update(stamps=[]),
    "one release more": lambda content: content["events"]["event"]["events"].append(
        {"kind": "gaussian", "noise_multiplier": 1.0}
    ),
}


@pytest.mark.parametrize("change", FORGED)
@pytest.mark.parametrize("method", ["primal-dual", "post-processing", "tailored"])
def test_verify_takes_what_fit_writes_and_refuses_what_was_changed(
    change: str, method: str, models: Path
) -> None:
    with inside(models):
        whole = Path(f"by-{method}", "statement.json")
        assert fairveil("verify", whole).code == 0
        content = json.loads(whole.read_text())
        FORGED[change](content)
        Path("forged.json").write_text(json.dumps(content))
        assert fairveil("verify", "forged.json").code == 1


@pytest.mark.parametrize("name", ["epsilon", "delta", "stamps", "events"])
def test_verify_refuses_what_was_changed_by_who_can_make_a_checksum(
    name: str, models: Path
) -> None:
    with inside(models):
        for method in ("primal-dual", "tailored"):
            whole = statement_of(Path(f"by-{method}"))
            less = {"epsilon": whole.epsilon * 0.9, "delta": whole.delta / 10, "stamps": ()}
            value = less.get(name, whole.events[:-1])
            forged = dataclasses.replace(whole, **{name: value}).to_json()
            Path("forged.json").write_text(forged)
            assert fairveil("verify", "forged.json").code == 1


def test_no_file_of_a_signed_model_can_be_changed(models: Path) -> None:
    with inside(models):
        shutil.copytree("by-oracle-game", "signed")
        assert fairveil("sign", "signed", "--key", "holder.key").code == 0
        assert fairveil("verify", "signed", "--key", "holder.pub").code == 0
        for name in ("statement.json", "model.json", "arrays.npz", "report.html", "estimator.json"):
            path = Path("signed", name)
            content = path.read_bytes()
            path.write_bytes(content[:-20] + content[-20:].replace(content[-3:-2], b"0", 1) + b" ")
            assert fairveil("verify", "signed", "--key", "holder.pub").code in (1, 2), name
            path.write_bytes(content)
        assert fairveil("verify", "signed", "--key", "holder.pub").code == 0


@pytest.mark.parametrize("method", METHODS)
def test_an_exported_query_decides_as_predict(method: str, models: Path) -> None:
    with inside(models):
        model = f"by-{method}"
        assert fairveil("export", model, "--out", f"{method}.sql", "--keep", "row").code == 0
        decide = ("predict", model, "people.csv", "--proba", "--seed", 1)
        told = pd.read_csv(io.StringIO(fairveil(*decide).out))
        frame = pd.read_csv("people.csv")
        frame["row"] = np.arange(len(frame))
        frame["uniform"] = np.random.default_rng(0).uniform(size=len(frame))
        with contextlib.closing(sqlite3.connect(":memory:")) as base:
            frame.to_sql("rows", base, index=False)
            query = pd.read_sql(Path(f"{method}.sql").read_text(), base).sort_values("row")
    shares = [f"probability[{name}]" for name in ("no", "yes")]
    drawn = told[shares].isin([0.0, 1.0]).all(axis=1) | (method not in RANDOMISED)
    np.testing.assert_allclose(query[shares], told[shares], atol=1e-12)
    np.testing.assert_array_equal(query["prediction"][drawn], told["prediction"][drawn])
    by_uniform = np.where(frame["uniform"] < query[shares[0]], "no", "yes")
    np.testing.assert_array_equal(query["prediction"][~drawn], by_uniform[~drawn])
    assert set(query["prediction"]) == {"no", "yes"}


RANDOMISED = {"oracle-game", "group-objective", "post-processing"}
