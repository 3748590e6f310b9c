"""The test vectors of the statement's specification: two programs that share no code, one answer.

`check.py` of the library and `docs/site/static/check.js`, run by node, must both come to the verdict
that is written in each vector; `make_vectors.py` writes them.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fairveil.statement import check, form, rule
from fairveil.statement.signing import Signature, public_key_in, verify_text

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
VECTORS = {file.name: json.loads(file.read_text("utf-8")) for file in HERE.glob("vectors/*.json")}
CHECKER = ROOT / "docs" / "site" / "static" / "check.js"


def text_of(vector: dict[str, Any]) -> str:
    return str(vector["text"]) if "text" in vector else json.dumps(vector["statement"])


def answered(vector: dict[str, Any]) -> dict[str, Any]:
    """What this library says of a vector."""
    text = text_of(vector)
    try:
        codes = sorted({one.code for one in check.findings(form.read(text)) if one.grave})
    except form.Malformed:
        return {"verdict": "malformed", "contradictions": []}
    found: dict[str, Any] = {
        "verdict": "inconsistent" if codes else "consistent",
        "contradictions": codes,
    }
    if "signature" in vector:
        try:
            envelope = Signature.from_json(json.dumps(vector["signature"]))
            verify_text(text, envelope, public_key_in(vector["key"].encode()))
            found["signature"] = "valid"
        except ValueError:
            found["signature"] = "refused"
    return found


@pytest.mark.parametrize("name", sorted(VECTORS))
def test_the_library_answers_as_the_vector_says(name: str) -> None:
    assert answered(VECTORS[name]) == VECTORS[name]["expected"]


def test_the_checker_of_the_page_gives_the_same_answers() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node on the path")
    schema = ROOT / "src" / "fairveil" / "statement" / "schema.json"
    command = [
        node,
        str(HERE / "check_vectors.mjs"),
        str(CHECKER),
        str(schema),
        str(HERE / "vectors"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=500)
    told = json.loads(done.stdout)
    found = {name: {**one["answer"]} for name, one in told.items()}
    assert found == {name: vector["expected"] for name, vector in VECTORS.items()}
    # and the same price, where there is one
    for name, one in told.items():
        if one["cost"] in (None, "inf") or "text" in VECTORS[name]:
            continue
        cost, on_a_grid = rule.charge(check.said_in(form.read(text_of(VECTORS[name]))))
        assert one["cost"] == pytest.approx(cost, rel=1e-4 if on_a_grid else 1e-9), name


def test_every_rule_is_broken_by_some_vector_and_kept_by_many() -> None:
    codes = Counter(code for one in VECTORS.values() for code in one["expected"]["contradictions"])
    page = (ROOT / "docs" / "statement_spec.md").read_text("utf-8").partition("## 5.")[2]
    known = set(re.findall(r"^\| `([a-z-]+)` \|", page.partition("## 6.")[0], re.MULTILINE))
    assert set(codes) == known
    assert Counter(one["expected"]["verdict"] for one in VECTORS.values()).keys() == {
        "consistent",
        "inconsistent",
        "malformed",
    }
    assert len(VECTORS) >= 60


def test_the_specification_names_every_code_and_every_forgery_that_a_signature_alone_finds() -> (
    None
):
    page = (ROOT / "docs" / "statement_spec.md").read_text("utf-8")
    codes = {code for one in VECTORS.values() for code in one["expected"]["contradictions"]}
    unseen = {name.removesuffix(".json") for name in VECTORS if name.startswith("unseen-")}
    assert not [word for word in codes | unseen if f"`{word}`" not in page]
    says = {"recomputed": "recomputed", "trusted": "on trust", None: "compares"}
    rows = {  # the page says of a field what the schema does
        f"| `{name}` | {one['description']} | {says[one.get('source')]} |"
        for name, one in form.schema()["properties"].items()
    }
    assert rows <= set(page.splitlines())
    kinds = {
        shape["properties"]["kind"]["const"] for shape in form.schema()["$defs"]["event"]["oneOf"]
    }
    assert not [kind for kind in kinds if f"`{kind}`" not in page]


def test_the_checker_of_the_page_sends_nothing_and_needs_nothing() -> None:
    code = CHECKER.read_text("utf-8")
    for word in (
        "fetch",
        "XMLHttpRequest",
        "WebSocket",
        "sendBeacon",
        "import(",
        "require(",
        "eval(",
    ):
        assert word not in code
