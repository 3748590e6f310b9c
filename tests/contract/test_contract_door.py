"""A holder's server as a stranger on the network meets it: real requests to `fairveil serve`, bytes
of which no client of ours has looked at. What may not be is refused and costs nothing; what was
answered is charged, written down, and never answered again under the same noise."""

from __future__ import annotations

import contextlib
import http.client
import io
import itertools
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import configurations
import numpy as np
import pandas as pd
import pytest

import fairveil as fv
from fairveil import cli
from fairveil.core.events import Event, Gaussian, Repeated, compose, to_json_dict
from fairveil.privacy import PrivacyStatement, Promise, Unit

pytest.importorskip("uvicorn")

PROMISE = Promise(2.0, 1e-6)
PLAN = Repeated(Gaussian(20.0), 4)
KEYS = itertools.count()
VIEW = {"steps": None, "target_as_number": False, "one_group": False, "division": None, "part": 0}
COUNT = {"kind": "row count", "copies": None}


def packed(content: Any, arrays: Sequence[Any] = ()) -> bytes:
    """A message: its length, JSON, and plain arrays."""
    told = [np.asarray(one, "<f8") for one in arrays]
    facts = [{"type": one.dtype.str, "shape": list(one.shape)} for one in told]
    head = json.dumps({"content": content, "arrays": facts}).encode()
    return b"FVD1" + len(head).to_bytes(4, "little") + head + b"".join(o.tobytes() for o in told)


def unpacked(raw: bytes) -> tuple[Any, list[Any]]:
    length = int.from_bytes(raw[4:8], "little")
    head, at, arrays = json.loads(raw[8 : 8 + length]), 8 + length, []
    for facts in head["arrays"]:
        kind, shape = np.dtype(facts["type"]), tuple(facts["shape"])
        count = int(np.prod(shape))
        arrays.append(np.frombuffer(raw, kind, count, at).reshape(shape))
        at += count * kind.itemsize
    return head["content"], arrays


@dataclass(frozen=True)
class Said:
    """An answer: its status, its words or content, its arrays."""

    status: int
    content: Any
    arrays: list[Any] = field(default_factory=list)


@dataclass
class Holder:
    """A folder that is served."""

    folder: Path
    url: str = ""
    process: Any = None
    numbers: Counter[str] = field(default_factory=Counter)

    def command(self, *words: str) -> str:
        """`fairveil door ...`, and what it prints."""
        told, before = io.StringIO(), sys.argv
        sys.argv = ["fairveil", "serve", *words, "--config", str(self.folder / "holder.toml")]
        try:
            with contextlib.redirect_stdout(told), contextlib.suppress(SystemExit):
                cli.main()
        finally:
            sys.argv = before
        return told.getvalue().strip()

    def token(self, *words: str) -> str:
        return self.command("--issue", "somebody", *words)

    def start(self) -> None:
        code = "from fairveil import cli; cli.main()"
        words = ["serve", "--config", str(self.folder / "holder.toml"), "--port", "0", "--quiet"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *words], stdout=subprocess.PIPE, text=True
        )
        told = (word for line in self.process.stdout for word in line.split())
        self.url = next(word for word in told if word.startswith("http")).rstrip(".,")

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def lines(self, name: str) -> list[str]:
        return [line.kind for line in self.ledger(name).history()]

    def spent(self, name: str) -> float:
        return float(self.ledger(name).balance().spent_share)

    def ledger(self, name: str) -> fv.Ledger:
        return fv.Ledger.open(self.folder / f"{name}.db", name, read_only=True)

    def ask(self, token: str, *path: str, body: bytes | None = None, key: str = "") -> Said:
        """One request."""
        to = urlsplit(self.url)
        headers = {"Authorization": f"Bearer {token}"}
        if body is not None:
            headers |= {"Idempotency-Key": key or f"key-{next(KEYS):012}"}
            headers |= {"Content-Type": "application/vnd.fairveil"}
        with closing(http.client.HTTPConnection(to.hostname or "", to.port, timeout=60)) as line:
            line.request("GET" if body is None else "POST", "/v1/" + "/".join(path), body, headers)
            answer = line.getresponse()
            raw = answer.read()
        if raw[:4] == b"FVD1":
            return Said(answer.status, *unpacked(raw))
        return Said(answer.status, json.loads(raw))

    def open(self, token: str, name: str = "added", key: str = "", **changes: Any) -> Said:
        """A run, with these parts of its request otherwise."""
        content = {"dataset": name, "promise": PROMISE.to_dict(), "plan": to_json_dict(PLAN)}
        content |= {"view": VIEW, "sources": 1, "seeds": None, "public_rows": None}
        content |= {"stated_clips": None, "purpose": "a test"} | changes
        return self.ask(token, "runs", body=packed(content), key=key)

    def begun(self, token: str, name: str = "added", **changes: Any) -> str:
        said = self.open(token, name, **changes)
        assert said.status == 200, said
        return str(said.content["run"])

    def counted(self, token: str, run: str, *questions: Any, number: int | None = None) -> Said:
        asks = [
            {"question": one, "multiplier": 20.0, "noise": "gaussian"}
            for one in questions or (COUNT,)
        ]
        body = packed({"asks": asks, "batch": {"kind": "full"}, "purpose": ""})
        place = self.numbers[run] + 1 if number is None else number
        said = self.ask(token, "runs", run, "ask", body=body, key=f"{place:08d}")
        if said.status == 200:
            self.numbers[run] = max(self.numbers[run], place)
        return said

    def close(self, token: str, run: str) -> None:
        assert self.ask(token, "runs", run, "close", body=packed({})).status == 200

    def statement(self, token: str, run: str, said: Sequence[str] = ()) -> PrivacyStatement:
        body = packed({"not_covered": list(said)})
        found = self.ask(token, "runs", run, "statement", body=body)
        assert found.status == 200, found
        return PrivacyStatement.from_json(json.dumps(found.content["statement"]))


REPLACED = {"neighbours": "replace-one"}
DATA: dict[str, tuple[dict[str, Any], str]] = {
    "added": ({}, "seeded = true"),
    "secret": (REPLACED, ""),
    "persons": ({"unit": "person"}, ""),
    "alone": ({"protects": "sensitive_features"}, ""),
    "another": ({}, ""),
}


def furnished(folder: Path, names: Sequence[str] = tuple(DATA)) -> Holder:
    """Everything that a holder has."""
    text = '[door]\nname = "Office"\nfolder = "door"\nport = 0\n[limits]\nopen_runs = 3\n'
    table = pd.DataFrame(configurations.people())
    for name in names:
        terms, more = DATA[name]
        unit = terms.get("unit")
        schema = configurations.schema_of("hired", ("sex",), unit=unit, rows=configurations.ROWS)
        table[list(schema.columns)].to_csv(folder / f"{name}.csv", index=False)
        schema.save(folder / f"{name}.toml")
        of = configurations.schema_of("grade", ("sex",)) if name == "another" else None
        terms = terms | ({} if of is None else {"schema": of})
        fv.Ledger.create(folder / f"{name}.db", name, 50.0, 1e-5, **terms).close()
        text += f'[datasets.{name}]\nrows = "{name}.csv"\nschema = "{name}.toml"\n'
        text += f'ledger = "{name}.db"\n{more}\n'
    (folder / "holder.toml").write_text(text)
    return Holder(folder)


@pytest.fixture(scope="module")
def holder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Holder]:
    found = furnished(tmp_path_factory.mktemp("holder"))
    found.start()
    yield found
    found.stop()


@pytest.fixture
def token(holder: Holder) -> str:
    return holder.token()


# ---- who may ask


def test_a_token_that_is_not_whole_has_ended_or_was_revoked_opens_nothing(holder: Holder) -> None:
    good, other = holder.token(), holder.token()
    ended = holder.token("--days", "1e-6")
    holder.command("--revoke", other.split("_")[1])
    time.sleep(0.2)
    wrong = good[:-1] + ("0" if good[-1] != "0" else "1")
    answers = [holder.ask(one, "datasets", "added") for one in (wrong, other, ended, "", "fv_x")]
    assert [one.status for one in answers] == [401] * 5
    assert len({json.dumps(one.content) for one in answers}) == 1
    assert holder.ask(good, "datasets", "added").status == 200


def test_no_file_of_the_holder_holds_a_secret(holder: Holder, token: str) -> None:
    secret = token.rpartition("_")[2]
    for path in holder.folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert secret.encode() not in content, path
            assert bytes.fromhex(secret) not in content, path


def test_a_token_sees_its_data_sets_alone(holder: Holder) -> None:
    narrow = holder.token("--dataset", "secret")
    assert holder.ask(narrow, "datasets", "secret").content["name"] == "secret"
    assert holder.open(narrow).status == holder.open(narrow, "nowhere").status == 404
    assert holder.ask(narrow, "datasets", "added").status == 404


# ---- what may be opened


def _different(number: int) -> Event:
    return compose(Gaussian(2000.0 + place) for place in range(number))


REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "no privacy": ("added", {"promise": Promise(float("inf"), 0.0).to_dict()}, "without privacy"),
    "no plan": ("added", {"plan": None}, "plan: expected"),
    "more than the plan costs": ("added", {"plan": to_json_dict(Gaussian(0.5))}, "plan"),
    "another relation": (
        "added",
        {"promise": Promise(2.0, 1e-6, **REPLACED).to_dict()},
        "add-remove",
    ),
    "rows for persons": ("persons", {}, "persons"),
    "persons for rows": (
        "added",
        {"promise": Promise(2.0, 1e-6, unit=Unit("person", 2)).to_dict()},
        "rows",
    ),
    "a larger delta": ("added", {"promise": Promise(2.0, 0.5).to_dict()}, "delta"),
    "a plan of many events": (
        "added",
        {"plan": to_json_dict(_different(4200))},
        "different events",
    ),
    "a seed": (
        "secret",
        {"seeds": ["00" * 32], "promise": Promise(2.0, 1e-6, **REPLACED).to_dict()},
        "random_state",
    ),
    "rows of another schema": ("another", {}, "fingerprint"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_run_that_may_not_be_is_refused_and_reserves_nothing(
    case: str, holder: Holder, token: str
) -> None:
    name, changes, word = REFUSED[case]
    before = holder.lines(name)
    said = holder.open(token, name, **changes)
    assert said.status in {403, 404, 409, 422}, said
    assert word in said.content["message"]
    assert holder.lines(name) == before


def test_a_token_has_so_many_open_runs(holder: Holder, token: str) -> None:
    runs = [holder.begun(token) for _ in range(3)]
    assert holder.open(token).status == 429
    for run in runs:
        holder.close(token, run)
    holder.close(token, holder.begun(token))


def test_a_key_is_of_one_request(holder: Holder, token: str) -> None:
    run = holder.begun(token, key="the-key-of-this")
    again = holder.open(token, key="the-key-of-this")
    assert again.content["run"] == run
    other = holder.open(token, key="the-key-of-this", plan=to_json_dict(Gaussian(30.0)))
    assert other.status == 409
    first, same = (holder.counted(token, run, number=1) for _ in "ab")
    assert first.arrays[0].tobytes() == same.arrays[0].tobytes()
    cells = {"kind": "row count", "copies": 2}
    assert holder.counted(token, run, cells, number=1).status == 409
    assert len(holder.statement(token, run).events) == 1
    assert holder.counted(holder.token(), run).status == 404
    holder.close(token, run)


# ---- what is answered, and charged


def test_what_was_answered_is_charged_and_the_rest_is_given_back(
    holder: Holder, token: str
) -> None:
    before = holder.spent("added")
    holder.close(token, holder.begun(token))
    assert holder.spent("added") == pytest.approx(before)
    run = holder.begun(token)
    reserved = holder.spent("added") - before
    assert holder.counted(token, run).status == 200
    holder.close(token, run)
    assert holder.spent("added") - before == pytest.approx(reserved / 4, rel=0.02)
    assert holder.counted(token, run).status == 409


def test_an_answer_of_too_many_numbers_is_refused(holder: Holder, token: str) -> None:
    run = holder.begun(token)
    said = holder.counted(token, run, *[{"kind": "row count", "copies": 1 << 21}] * 3)
    assert said.status == 422
    assert "numbers in one answer" in said.content["message"]
    holder.close(token, run)


def test_noise_is_secret_and_of_one_run(holder: Holder, token: str) -> None:
    promise = Promise(2.0, 1e-6, **REPLACED).to_dict()
    found = []
    for _ in range(3):
        run = holder.begun(token, "secret", promise=promise)
        moments = {"kind": "number moments", "clip": 2.0}
        said = holder.counted(token, run, moments)
        assert said.status == 200, said
        found.append(said.arrays[0].tobytes())
        assert holder.statement(token, run).noise == "secure"
        holder.close(token, run)
    assert len(set(found)) == 3


def test_features_that_are_not_served_are_not_told(holder: Holder, token: str) -> None:
    promise = Promise(2.0, 1e-6, "sensitive_features").to_dict()
    run = holder.begun(token, "alone", promise=promise)
    said = holder.ask(token, "runs", run, "table", body=packed({"most": 10_000}))
    assert said.status == 403
    holder.close(token, run)


def test_an_analysts_words_are_marked_as_such(holder: Holder, token: str) -> None:
    run = holder.begun(token)
    holder.counted(token, run)
    told = holder.statement(token, run, ["the ministry approves"]).not_covered
    assert "said by the analyst: the ministry approves" in told
    assert "the ministry approves" not in told
    holder.close(token, run)


# ---- rows set aside


def divided(holder: Holder, token: str, name: str = "secret", seed: str | None = None) -> Said:
    body = packed({"share": 0.4, "seed": seed, "coins": "certificate"})
    return holder.ask(token, "datasets", name, "divide", body=body)


def test_parts_are_the_whole_and_of_one_token(holder: Holder, token: str) -> None:
    promise = Promise(2.0, 1e-6, **REPLACED).to_dict()
    told = divided(holder, token).content
    assert sum(told["rows"]) == configurations.ROWS
    view = VIEW | {"division": told["division"]}
    holder.close(token, holder.begun(token, "secret", promise=promise, view=view))
    assert holder.open(holder.token(), "secret", promise=promise, view=view).status == 404
    assert holder.open(token, "added", view=view).status == 404


def test_coins_are_the_holders(holder: Holder, token: str) -> None:
    assert divided(holder, token, seed="00" * 32).status == 403
    assert divided(holder, token, "added", seed="00" * 32).status == 200


# ---- a server that dies


def test_a_run_goes_on_with_another_server_and_other_noise(tmp_path: Path) -> None:
    """Of one seed: what is answered later has noise of its own, and statements call it seeded. What
    was answered before is told again, where all is asked again."""
    holder = furnished(tmp_path, ["added"])
    holder.start()
    token = holder.token()
    told: dict[str, Any] = {"seeds": ["00" * 32], "key": "the-key-of-this"}
    run = holder.begun(token, **told)
    first = holder.counted(token, run)
    assert first.status == 200
    holder.kill()
    holder.start()
    assert holder.counted(token, run).content["error"] == "resume"
    assert holder.begun(token, **told) == run
    same = holder.counted(token, run, number=1)
    assert first.arrays[0].tobytes() == same.arrays[0].tobytes()
    second = holder.counted(token, run)
    assert second.status == 200
    assert first.arrays[0].tobytes() != second.arrays[0].tobytes()
    assert holder.statement(token, run).events == (Repeated(Gaussian(20.0), 2),)
    assert holder.statement(token, run).noise == "seeded"
    holder.kill()
    holder.start()
    try:
        holder.close(token, run)
        assert holder.counted(token, run).status == 409
        assert holder.lines("added")[-1] == "committed"
    finally:
        holder.stop()
