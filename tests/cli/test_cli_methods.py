"""Models that are randomized or by group on the command line: `fit --method`, their distributions
and draws, audits by expectation."""

from __future__ import annotations

import csv
import html
import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from people_who_do_not_exist import HEADER, Command, applicants, write_csv
from sklearn.linear_model import LogisticRegression

import fairveil as fv
from fairveil.cli.deciding import by_chance, groups_read
from fairveil.curator import Curator
from fairveil.data import load_csv
from fairveil.errors import ConstraintNotMet
from fairveil.facts import Category, Number, Schema
from fairveil.facts.columns import Column

ODDS = ("--constraint", "equalized_odds:0.05")
ROLES = ("--target", "hired", "--sensitive", "sex")
LAW = ("probability[no]", "probability[yes]")


class Models:
    """Models fitted in Python, each once and when it is first asked for, as `models / name`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.table = write_csv(path / "t.csv", applicants(3000, 1))
        self.schema = _schema(path / "s.toml")
        self.X = features(applicants(3000, 1))
        self.y = np.array([row[4] for row in applicants(3000, 1)], dtype=object)

    def __truediv__(self, name: str) -> Path:
        if not (self.path / name).exists():
            fv.save(getattr(self, name)(), self.path / name)
        return self.path / name

    def coded(self) -> fv.OddsPostProcessor:
        """By a schema."""
        clf = fv.OddsPostProcessor(
            None, "equalized_odds:0.05", epsilon=3.0, random_state=0, predict_method="predict"
        )
        return clf.fit(load_csv(self.table, Schema.load(self.schema)))

    def plain(self) -> fv.OddsPostProcessor:
        """From columns as they come."""
        clf = fv.OddsPostProcessor(
            None, "equalized_odds:0.05", epsilon=3.0, protects="sensitive_features", random_state=0
        )
        return clf.fit(self.X, self.y, sensitive_features="sex")

    def certain(self) -> fv.OddsPostProcessor:
        """It is group-aware, and not by chance."""
        return self.plain().derandomise()

    def foreign(self) -> fv.OddsPostProcessor:
        """Around a classifier of another library."""
        clf = fv.OddsPostProcessor(
            LogisticRegression(),
            "equalized_odds:0.05",
            protects="sensitive_features",
            random_state=0,
        )
        numbers = np.column_stack([self.X["age"], self.X["score"]]).astype(float)
        return clf.fit(numbers, self.y, sensitive_features=self.X["sex"])

    def listed(self) -> fv.OracleGameClassifier:
        """A mixture of classifiers of another library."""
        numbers = np.column_stack([self.X["age"], self.X["score"]]).astype(float)
        candidates = [LogisticRegression(C=C).fit(numbers, self.y) for C in (0.01, 1.0)]
        clf = fv.OracleGameClassifier(
            fv.DemographicParity(0.5),
            epsilon=3.0,
            protects="sensitive_features",
            rounds=50,
            random_state=0,
            oracle="exponential",
            solver=fv.OracleGame(candidates=candidates),
        )
        return clf.fit(numbers, self.y, sensitive_features=self.X["sex"])

    def aware(self) -> fv.OracleGameClassifier:
        """A mixture of rules that read the group."""
        constraint = fv.FalsePositiveRateParity(0.2, positive="yes")
        clf = fv.OracleGameClassifier(
            constraint,
            epsilon=3.0,
            protects="sensitive_features",
            rounds=50,
            solver=fv.OracleGame(group_aware=True),
            random_state=0,
        )
        return clf.fit(self.X, self.y, sensitive_features="sex")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Models:
    return Models(tmp_path_factory.mktemp("models"))


def features(rows: list[list[object]]) -> dict[str, np.ndarray]:
    """age, score, city, sex."""
    kinds: tuple[Any, ...] = (int, float, object, object)
    return {
        name: np.array([row[at] for row in rows], kinds[at]) for at, name in enumerate(HEADER[:4])
    }


def _schema(path: Path) -> Path:
    columns: dict[str, Column] = {
        "age": Number(16, 80),
        "score": Number(0, 100),
        "city": Category(("a", "b")),
        "sex": Category(("female", "male")),
        "hired": Category(("no", "yes")),
    }
    Schema(columns, target="hired", sensitive=("sex",), rows=4000, name="applicants").save(path)
    return path


@pytest.fixture
def renamed(tmp_path: Path) -> Path:
    """The rows of `others`, the groups under another name."""
    return write_csv(
        tmp_path / "renamed.csv",
        applicants(1500, 2),
        ["gender" if name == "sex" else name for name in HEADER],
    )


def columns_of(text: str) -> dict[str, list[str]]:
    lines = list(csv.DictReader(text.splitlines()))
    return {name: [line[name] for line in lines] for name in lines[0]}


def law_of(text: str) -> np.ndarray:
    found = columns_of(text)
    return np.array([found[name] for name in LAW], float).T


# Predictions


@pytest.mark.parametrize("name", ["coded", "plain", "aware"])
def test_a_group_aware_randomized_model_predicts_as_in_python(
    fairveil: Command, folders: Models, others: Path, renamed: Path, name: str
) -> None:
    clf = fv.load(folders / name)
    X: Any = features(applicants(1500, 2))
    sex = X.pop("sex")
    if name == "coded":
        X = load_csv(others, Schema.load(folders.schema))
    done = fairveil("predict", folders / name, others, "--proba", "--seed", 7)
    assert done.code == 0, done.err
    assert done.err == (
        "fairveil: note: this classifier is randomized: the decisions were drawn from their "
        "distribution, by --seed 7\n"
    )
    assert np.array_equal(law_of(done.out), clf.predict_proba(X, sensitive_features=sex))
    assert (
        columns_of(done.out)["prediction"]
        == clf.predict(X, sensitive_features=sex, random_state=7).tolist()
    )
    assert fairveil("predict", folders / name, others, "--proba", "--seed", 7).out == done.out
    assert fairveil("predict", folders / name, others, "--proba", "--seed", 8).out != done.out
    assert (
        fairveil(
            "predict", folders / name, renamed, "--sensitive", "gender", "--proba", "--seed", 7
        ).out
        == done.out
    )


def test_draws_without_a_seed_are_new_ones_of_the_same_distribution(
    fairveil: Command, folders: Models, others: Path
) -> None:
    """1,500 draws of which about 150 are against the likelier class: that two runs agree in all has
    a chance below 1e-50."""
    one, two = (fairveil("predict", folders / "plain", others, "--proba") for _ in range(2))
    assert "anew at every call" in one.err
    assert np.array_equal(law_of(one.out), law_of(two.out))
    assert one.out != two.out


def test_a_model_without_chance_says_nothing_of_draws(
    fairveil: Command, folders: Models, others: Path
) -> None:
    one, two = (fairveil("predict", folders / "certain", others, "--seed", seed) for seed in (1, 2))
    assert (one.code, one.err, one.out) == (0, "", two.out)
    assert (
        "expected ones"
        not in fairveil("audit", others, "--model", folders / "certain", "--target", "hired").out
    )


def test_offsets_are_fitted_saved_and_drawn(fairveil: Command, tmp_path: Path) -> None:
    table, schema = write_csv(tmp_path / "t.csv", applicants(3000, 1)), _schema(tmp_path / "s.toml")
    common = ("--method", "parity-post-processing", "--seed", 0, "--epsilon", 3, "--holdout", "0.3")
    parity = ("--constraint", "demographic_parity:5%")
    done = fairveil("fit", table, "--schema", schema, *common, *parity, "--out", "m")
    assert done.code == 0, done.err
    assert "private post-processing by offsets" in Path("m/report.html").read_text("utf-8")
    clf = fv.load(tmp_path / "m")
    assert clf.max_gap == 0.05
    one, two = (fairveil("predict", "m", table, "--seed", 1) for _ in range(2))
    assert one.code == 0
    assert one.out == two.out
    assert by_chance(clf)
    assert groups_read(clf) == clf.cells_
    for wrong in (
        ODDS,
        (*parity, *ODDS),
        (),
        ("--constraint", "demographic_parity:5%,compare=rest"),
    ):
        done = fairveil("fit", table, "--schema", schema, *common, *wrong, "--out", "n")
        assert done.code == 2
        assert "demographic_parity and a bound" in done.err


def test_groups_that_look_like_numbers_are_read_as_the_words_they_are(
    fairveil: Command, tmp_path: Path
) -> None:
    """Group "0" and "1" under a schema that has them as words, and the same without: the column is
    all digits."""
    rows = [[*row[:3], str(int(row[3] == "male")), row[4]] for row in applicants(1500, 1)]
    table = write_csv(tmp_path / "digits.csv", rows)
    text = _schema(tmp_path / "s.toml").read_text("utf-8")
    (tmp_path / "s.toml").write_text(
        text.replace('"female"', '"0"').replace('"male"', '"1"'), "utf-8"
    )
    common = (*ODDS, "--method", "post-processing", "--seed", 0, "--protects", "sensitive-features")
    assert fairveil("fit", table, "--schema", "s.toml", *common, "--out", "words").code == 0
    assert fairveil("fit", table, *ROLES, *common, "--out", "numbers").code == 0
    for folder in ("words", "numbers"):
        done = fairveil("predict", folder, table, "--seed", 1)
        assert done.code == 0, done.err


def test_missing_groups_are_an_error_that_says_what_to_do(
    fairveil: Command, folders: Models, others: Path, renamed: Path, tmp_path: Path
) -> None:
    (tmp_path / "p.csv").write_text("before", "utf-8")
    bare = write_csv(tmp_path / "bare.csv", [row[:3] for row in applicants(40, 3)], HEADER[:3])
    odd = [[*row[:3], "other", row[4]] for row in applicants(40, 3)]
    strange = write_csv(tmp_path / "strange.csv", odd)
    empty = write_csv(tmp_path / "empty.csv", [[*row[:3], "", row[4]] for row in odd])
    before = set(tmp_path.iterdir())
    for name in ("coded", "plain"):
        for table, options, says in (
            (bare, (), "columns sex: this model is group-aware"),
            (renamed, (), "say with --sensitive which columns hold the groups"),
            (bare, ("--sensitive", "gender"), "columns gender"),
            (others, ("--sensitive", "sex", "--sensitive", "city"), "1 distinct columns, for sex"),
            (
                others,
                ("--sensitive", "city"),
                "with other roles" if name == "coded" else "one of female, male",
            ),
            (strange, (), "other"),
            (empty, (), "sex"),
            (others, ("--seed", "-1"), "expected"),
        ):
            done = fairveil("predict", folders / name, table, *options, "--out", "p.csv", "--force")
            assert done.code == 2, (name, table, options)
            assert says in done.err
            assert done.refusal.count("\n") == 2
            assert (tmp_path / "p.csv").read_text("utf-8") == "before"
            assert set(tmp_path.iterdir()) == before


def test_groups_are_refused_where_none_are_read(
    fairveil: Command, table: Path, tmp_path: Path
) -> None:
    assert fairveil("fit", table, *ROLES, "--seed", 0, "--out", "m").code == 0
    done = fairveil("predict", "m", table, "--sensitive", "sex")
    assert (done.code, done.refusal.count("\n")) == (2, 2)
    assert "does not read groups" in done.err


@pytest.mark.parametrize("command", ["predict", "audit"])
@pytest.mark.parametrize("name", ["foreign", "listed"])
def test_a_classifier_that_was_not_written_is_said_with_the_way_out(
    fairveil: Command, folders: Models, others: Path, tmp_path: Path, command: str, name: str
) -> None:
    model = (
        (folders / name, others)
        if command == "predict"
        else (others, "--model", folders / name, *ROLES)
    )
    done = fairveil(command, *model)
    assert (done.code, done.refusal.count("\n")) == (2, 2)
    assert "one around LogisticRegression: made elsewhere and not written" in done.err
    assert "--prediction COLUMN" in done.err
    broken = shutil.copytree(folders / "coded", tmp_path / "broken")
    (broken / "base.arrays.npz").write_bytes(b"")
    # other troubles keep their own words
    assert "SHA-256" in fairveil("predict", broken, others).err


# Audits


@pytest.mark.parametrize("name", ["coded", "plain", "aware"])
def test_an_audit_of_a_model_that_is_randomized_is_of_expected_rates(
    fairveil: Command, folders: Models, others: Path, renamed: Path, name: str
) -> None:
    rows = applicants(1500, 2)
    y, sex = ([row[at] for row in rows] for at in (4, 3))
    law = law_of(fairveil("predict", folders / name, others, "--proba", "--seed", 0).out)
    done = fairveil("audit", others, "--model", folders / name, *ROLES, "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["expected"] is True
    assert found["table"] == json.loads(
        fv.group_table(y, law, sex, classes=["no", "yes"]).to_json()
    )
    gap = fv.equalized_odds_gap(y, law, sex, classes=["no", "yes"])
    assert found["gaps"]["equalized odds"]["value"] == pytest.approx(gap, abs=1e-12)
    # no luck in it
    assert fairveil("audit", others, "--model", folders / name, *ROLES, "--json").out == done.out
    under_other_names = (
        "audit",
        renamed,
        "--model",
        folders / name,
        "--target",
        "hired",
        "--sensitive",
        "gender",
    )
    assert json.loads(fairveil(*under_other_names, "--json").out)["gaps"] == found["gaps"]
    assert (
        "rates are expected ones: this classifier is randomized" in fairveil(*under_other_names).out
    )


def test_an_audit_looks_at_other_groups_than_the_model_reads(
    fairveil: Command, folders: Models, others: Path
) -> None:
    for name in ("coded", "plain"):
        done = fairveil(
            "audit",
            others,
            "--model",
            folders / name,
            "--target",
            "hired",
            "--sensitive",
            "city",
            "--json",
        )
        assert done.code == 0, done.err
        assert [row["group"] for row in json.loads(done.out)["table"]["groups"]] == ["a", "b"]


def test_the_page_of_an_audit_says_that_rates_are_expected(
    fairveil: Command, folders: Models, others: Path, tmp_path: Path
) -> None:
    assert fairveil("audit", others, "--model", folders / "coded", "--html", "audit.html").code == 0
    twin = json.loads((tmp_path / "audit.json").read_text("utf-8"))
    assert twin["tables"][0]["expected"] is True
    assert any(note.startswith("Rates are expected ones") for note in twin["notes"])
    assert "Rates are expected ones" in (tmp_path / "audit.html").read_text("utf-8")


# Fits


@pytest.mark.parametrize("method", ["post-processing", "game"])
def test_fit_writes_model_statement_and_report_of_every_method(
    fairveil: Command, table: Path, others: Path, schema: Path, tmp_path: Path, method: str
) -> None:
    command = (
        "fit",
        table,
        "--schema",
        schema,
        *ODDS,
        "--epsilon",
        3,
        "--method",
        method,
        "--seed",
        0,
    )
    # both are randomized
    more = {"post-processing": {"predict_method": "predict"}, "game": {}}[method]
    options = [
        word for name, value in more.items() for word in (f"--{name.replace('_', '-')}", value)
    ]
    done = fairveil(*command, *options, "--test", others, "--out", "model")
    assert done.code == 0, done.err
    cls: Any = {"post-processing": fv.OddsPostProcessor, "game": fv.OracleGameClassifier}[method]
    saved = fv.load(tmp_path / "model")
    assert type(saved) is cls
    assert fairveil("verify", "model/statement.json").code == 0
    statement = fv.PrivacyStatement.from_json(
        (tmp_path / "model/statement.json").read_text("utf-8")
    )
    assert statement.promise == fv.Promise(3.0, 1e-6)
    assert statement.epsilon <= 3.0
    assert any("separate test table" in sentence for sentence in statement.not_covered)

    # The same as in Python, to the bit.
    declared = Schema.load(schema)
    clf = cls(
        constraints="equalized_odds:0.05", epsilon=3.0, public_rows=4000, random_state=0, **more
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstraintNotMet)  # the command has said it as a note
        clf.fit(load_csv(table, declared))
    rows = load_csv(others, declared)
    law = clf.predict_proba(rows)
    assert np.array_equal(saved.predict_proba(rows), law)

    twin = json.loads((tmp_path / "model/report.json").read_text("utf-8"))
    page = html.unescape((tmp_path / "model/report.html").read_text("utf-8"))
    assert cls.__name__ in twin["method"]
    assert twin["method"] in page
    assert twin["results"]["What is certain"] == json.loads(json.dumps(clf.guarantee_.to_dict()))
    (part,) = (one["parts"] for one in twin["sections"] if one["heading"] == "What is certain")
    assert part["certain"] in page
    assert all(sentence in page for sentence in part["notes"])
    assert twin["tables"][0]["expected"] is True
    assert "Rates are expected ones" in page
    said = [row[4] for row in applicants(1500, 2)], law, [row[3] for row in applicants(1500, 2)]
    gap = fv.equalized_odds_gap(*said, classes=["no", "yes"])
    assert twin["gaps"][0]["held_out"] == pytest.approx(gap, abs=1e-12)
    assert any("expected" in note for note in twin["gaps"][0]["notes"])
    assert "Coefficients of the linear score" not in twin["results"]
    (said,) = (one["parts"] for one in twin["sections"] if one["heading"] == "Privacy statement")
    reads = "reads a person's group" in said["Not covered"]
    assert reads == (groups_read(clf) is not None) == (method == "post-processing")
    assert by_chance(clf)

    # And the commands that follow.
    assert fairveil("predict", "model", others, "--seed", 1).code == 0
    assert fairveil("audit", others, "--model", "model").code == 0


def test_fit_puts_thresholds_on_scores_by_group_or_for_everybody_without_chance(
    fairveil: Command, table: Path, others: Path, schema: Path, tmp_path: Path
) -> None:
    command = (
        "fit",
        table,
        "--schema",
        schema,
        *ODDS,
        "--epsilon",
        3,
        "--method",
        "post-processing",
        "--seed",
        0,
    )
    assert fairveil(*command, "--no-randomised", "--out", "own").code == 0
    assert fairveil(*command, "--no-group-aware", "--out", "shared").code == 0
    own, shared = (fv.load(tmp_path / name) for name in ("own", "shared"))
    assert own.predict_method_ == shared.predict_method_ == "decision_function"
    assert not by_chance(own)
    assert groups_read(own) is not None
    assert groups_read(shared) is None
    for name in ("own", "shared"):
        twin = json.loads((tmp_path / name / "report.json").read_text("utf-8"))
        assert "thresholds on its score" in str(twin)
        assert fairveil("verify", f"{name}/statement.json").code == 0
        assert fairveil("predict", name, others, "--seed", 1).code == 0
        assert fairveil("audit", others, "--model", name).code == 0
    wrong = fairveil(*command, "--predict-method", "proba", "--out", "wrong")
    assert wrong.code == 2
    assert "--predict-method" in wrong.err
    wrong = fairveil("fit", table, "--schema", schema, *ODDS, "--no-group-aware", "--out", "wrong")
    assert wrong.code == 2
    assert "it is of --method post-processing" in wrong.err


def test_the_default_method_is_as_before(
    fairveil: Command, table: Path, schema: Path, tmp_path: Path
) -> None:
    for out, more in (("one", ()), ("two", ("--method", "rate-constrained"))):
        assert (
            fairveil("fit", table, "--schema", schema, "--seed", 0, "--out", out, *more).code == 0
        )
    twins = [
        json.loads((tmp_path / out / "report.json").read_text("utf-8")) for out in ("one", "two")
    ]
    assert twins[0] == twins[1]
    assert "What is certain" not in twins[0]["results"]
    assert "RateConstrainedClassifier" in twins[0]["method"]
    assert type(fv.load(tmp_path / "one")) is fv.RateConstrainedClassifier


def test_post_processing_without_constraints_has_no_guarantee_and_says_so(
    fairveil: Command, table: Path, schema: Path, tmp_path: Path
) -> None:
    done = fairveil(
        "fit",
        table,
        "--schema",
        schema,
        "--method",
        "post-processing",
        "--seed",
        0,
        "--out",
        "model",
    )
    assert done.code == 0, done.err
    twin = json.loads((tmp_path / "model/report.json").read_text("utf-8"))
    assert "What is certain" not in twin["results"]
    assert any("Nothing was required" in note for note in twin["notes"])


def test_held_out_rows_by_columns_bring_their_groups(
    fairveil: Command, table: Path, tmp_path: Path
) -> None:
    command = (
        "fit",
        table,
        *ROLES,
        *ODDS,
        "--protects",
        "sensitive-features",
        "--method",
        "post-processing",
    )
    done = fairveil(*command, "--holdout", 0.3, "--seed", 0, "--out", "model")
    assert done.code == 0, done.err
    twin = json.loads((tmp_path / "model/report.json").read_text("utf-8"))
    assert twin["tables"][0]["expected"] is True
    assert twin["gaps"][0]["held_out"] is not None


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--method", "magic"), "expected"),
        (("--method", "post-processing", *ROLES[:2], *ODDS), "expected groups"),
        (("--method", "game", *ROLES[:2], *ODDS), "expected groups"),
        (("--method", "game", *ROLES, "--epsilon", "-1"), "expected"),
        (
            ("--method", "post-processing", *ROLES, "--constraint", "karma:0.1"),
            "expected a name out of",
        ),
        (("--method", "post-processing", *ROLES, *ODDS, "--test", "nowhere.csv"), "nowhere.csv"),
        (("--method", "game", *ROLES, *ODDS, "--tuning", "two\nlines"), "tuning"),
    ],
)
def test_a_fit_of_any_method_that_is_refused_asks_nothing_and_leaves_nothing(
    fairveil: Command,
    table: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[object, ...],
    says: str,
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(Curator, "answer", lambda *_, **__: asked.append(1))
    before = set(tmp_path.iterdir())
    done = fairveil("fit", table, *arguments, "--out", "model")
    assert (done.code, done.refusal.count("\n")) == (2, 2), done.err
    assert says in done.err
    assert set(tmp_path.iterdir()) == before
    assert not asked


@pytest.mark.parametrize("method", ["post-processing", "game"])
def test_a_fit_that_is_interrupted_leaves_what_was_there(
    fairveil: Command,
    table: Path,
    schema: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
) -> None:
    command = ("fit", table, "--schema", schema, *ODDS, "--seed", 1, "--out", "model", "--force")
    assert fairveil(*command).code == 0
    before = {file: file.read_bytes() for file in (tmp_path / "model").iterdir()}

    def breaks(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("fairveil.show.report.os.replace", breaks)
    done = fairveil(*command, "--method", method)
    assert done.code == 3  # fitted and charged; what was made is kept elsewhere
    assert "Traceback" not in done.err
    assert {file: file.read_bytes() for file in (tmp_path / "model").iterdir()} == before
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    # another method's folder is replaced whole: no file of it stays
    done = fairveil(*command, "--method", method)
    assert done.code == 0, done.err
    assert type(fv.load(tmp_path / "model")) is not fv.RateConstrainedClassifier
