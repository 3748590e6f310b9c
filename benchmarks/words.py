"""How often pages, docstrings and messages use words that the style guide replaces, and how many
sentences are long.

python benchmarks/words.py [CHECKOUT]        a line a word; another checkout's texts by this one's rules
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import messages
import test_words

HERE = Path(__file__).resolve().parent.parent

COUNTED = {
    "law": r"\blaws?\b",
    "pays": r"\b(?:pays?|paid|paying)\b",
    "stamp": r"\bstamp(?:s|ed)?\b",
    "room": r"\brooms?\b",
    "shortened": r"\bshorten(?:s|ed|ing)?\b",
    "promised": r"\bpromis(?:e|es|ed)\b",
}
NAMES = re.compile(r"^ *(?:>>>|\.\.\.).*$|^[\w, *]+ : .*$|\bPromise\b|\w+\(promise\)", re.MULTILINE)
"""Of a docstring: examples, heads of parameters, and the name of a class."""


def pages(root: Path) -> list[str]:
    """All pages of docs/ and the README; the architecture, which defines rooms, is not among
    them."""
    found = [*(root / "docs").rglob("*.md"), root / "README.md"]
    return [
        path.read_text("utf-8")
        for path in found
        if path.name not in (*test_words.ABOUT_THE_SOURCES, "style.md", "api.md")
    ]


def docstrings(root: Path) -> list[str]:
    """Docstrings of public modules, classes and functions; of modules the first line."""
    found = []
    for path in sorted((root / "src" / "fairveil").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
                doc = ast.get_docstring(node)
                # with sections: for users
                if doc is not None and re.search(r"^-{3,}$", doc, re.MULTILINE):
                    found.append(NAMES.sub("", doc))
    return found


def main() -> None:
    root = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else HERE
    messages.ROOT = root / "src" / "fairveil"
    said = [test_words.CODE.sub("", text) for _, text in messages.messages()]
    texts = {"pages": pages(root), "docstrings": docstrings(root), "messages": said}
    print(f"{'':12}" + "".join(f"{kind:>12}" for kind in texts))
    for word, pattern in COUNTED.items():
        counts = (
            sum(
                len(
                    re.findall(
                        pattern, test_words.ALLOWED.sub("", test_words.prose(one)), re.IGNORECASE
                    )
                )
                for one in of_kind
            )
            for of_kind in texts.values()
        )
        print(f"{word:12}" + "".join(f"{count:12,}" for count in counts))
    long = (
        sum(
            test_words.words(sentence) > test_words.MOST_WORDS
            for one in of_kind
            for sentence in test_words.sentences(one)
        )
        for of_kind in texts.values()
    )
    print(f"{'long':12}" + "".join(f"{count:12,}" for count in long))


if __name__ == "__main__":
    main()
