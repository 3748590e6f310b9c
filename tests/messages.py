"""What the library says to its users: errors, warnings, help, statement sentences, reports. Read
from the sources, not run."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent
ROOT = TESTS.parent / "src" / "fairveil"
EXAMPLES = re.compile(r"^ *>>>.*(?:\n *[^\s].*)*|^ *[\w, *]+ : ", re.MULTILINE)


def messages() -> Iterator[tuple[str, str]]:
    """(place, text) of every text of three words or more in the sources; docstrings are not among
    them."""
    for path in sorted(ROOT.rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        inside = {
            id(part)
            for node in ast.walk(tree)
            if isinstance(node, ast.JoinedStr)
            for part in node.values
        }
        inside |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if id(node) in inside or not isinstance(node, ast.Constant | ast.JoinedStr):
                continue
            text = _text(node)
            if len(re.findall(r"[A-Za-z]{2,}", text)) >= 3 and " " in text:
                yield f"{path.relative_to(ROOT)}:{node.lineno}", text
    for path in sorted(ROOT.rglob("*.html")):
        shown = re.sub(
            r"<(?:style|script).*?</(?:style|script)>|\{[{%#].*?[}%#]\}|<[^>]*>",
            " ",
            path.read_text("utf-8"),
            flags=re.DOTALL,
        )
        yield str(path.relative_to(ROOT)), shown


def remarks() -> Iterator[tuple[str, str]]:
    """(place, text) of every comment, docstring and name of a test. Examples and the heads of
    parameters are code; this file and the list of words itself are left out."""
    for path in [*sorted(ROOT.rglob("*.py")), *sorted(TESTS.rglob("*.py"))]:
        if path.name in ("messages.py", "test_words.py"):
            continue
        text = path.read_text("utf-8")
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield f"{path.name}:{token.start[0]}", token.string.lstrip("# ")
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                continue
            place = f"{path.name}:{getattr(node, 'lineno', 1)}"
            if (doc := ast.get_docstring(node)) is not None:
                yield place, EXAMPLES.sub("", doc)
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                yield place, node.name.removeprefix("test_").replace("_", " ")


def _text(node: ast.Constant | ast.JoinedStr) -> str:
    """What is known of it before it is filled in."""
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values
        )
    return node.value if isinstance(node.value, str) else ""
