"""The page that checks a statement, in a real browser: docs/site/check.html."""

from __future__ import annotations

import html
import importlib.util
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from browsing import Audit, needs_axe, needs_browser

pytest_plugins = ["browsing"]
HERE = Path(__file__).parent
SITE = HERE.parent.parent / "docs" / "site"


def page() -> str:
    """As the site has it."""
    sys.path.insert(0, str(SITE))
    try:
        spec = importlib.util.spec_from_file_location("site_pages", SITE / "pages.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return str(module.checker())
    finally:
        sys.path.remove(str(SITE))


def shown(name: str) -> str:
    """The page after a vector was chosen."""
    vector: dict[str, Any] = json.loads((HERE / "vectors" / f"{name}.json").read_text("utf-8"))
    text = vector["text"] if "text" in vector else json.dumps(vector["statement"])
    envelope = json.dumps(vector["signature"]) if "signature" in vector else None
    given = json.dumps([text, envelope, vector.get("key")]).replace("</", "<\\/")
    return page().replace("</html>", f"<script>show(...{given})</script></html>")


@needs_browser
@pytest.mark.parametrize(
    ("name", "verdict", "words"),
    [
        ("consistent-batches-replace-one", "good", "Consistent: the events cost no more"),
        (
            "forged-batches-lowered",
            "bad",
            "the events cost another epsilon than is stated (epsilon)",
        ),
        ("malformed-field-twice", "bad", "This is no privacy statement."),
        ("signed", "good", "Signed by sha256:"),
        ("unseen-seeds-denied-with-their-flag", "bad", "The signature does not hold."),
    ],
)
def test_the_page_says_what_was_found(
    name: str, verdict: str, words: str, run: Callable[..., str], tmp_path: Path
) -> None:
    file = tmp_path / "check.html"
    file.write_text(shown(name), "utf-8")
    told = html.unescape(run("--dump-dom", file.as_uri()))
    assert re.search(rf'<div role="status" id="verdict" class="{verdict}">', told)
    assert words in told


def test_the_page_is_one_file_that_may_load_nothing() -> None:
    text = page()
    assert "{{" not in text
    assert "default-src 'none'" in text
    assert not re.search(
        r"(?:src|href)\s*=",
        re.sub(r"default-src|script-src|style-src", "", text).split("<script")[0],
    )


@needs_axe
def test_the_page_can_be_read_by_everybody(audit: Audit) -> None:
    plain = re.sub(r"<meta http-equiv[^>]+>", "", shown("forged-batches-lowered"))
    assert audit(plain, 500)["wrong"] == []
