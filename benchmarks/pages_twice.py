"""Which pages run alone, and twice in one folder; and all tutorials in one folder.

    python benchmarks/pages_twice.py [PAGE ...]          a line a page; ends with 1 where one fails

The test suite runs each page once in an empty folder. This takes some ten minutes.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import test_docs
import test_pages


def failure(page: Path) -> str | None:
    """What went wrong, in a line."""
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            test_docs.run_examples(page.read_text("utf-8"), page.name)
    except (Exception, SystemExit) as problem:
        return " ".join(f"{type(problem).__name__}: {problem}".split())[:300]
    return None


def run(pages: list[Path], times: int) -> bool:
    """All of them in one folder, so many times each."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for page in pages:
            for time in range(1, times + 1):
                wrong = failure(page)
                if wrong is not None:
                    print(f"{page.name}, run {time}: {wrong}", flush=True)
                    os.chdir("/")
                    return False
        os.chdir("/")
    print(f"{' '.join(page.name for page in pages)}: well", flush=True)
    return True


def main() -> None:
    """Run and print."""
    pages = [Path(page).resolve() for page in sys.argv[1:]] or test_docs.PAGES
    found = [run([page], 2) for page in pages if test_docs.BLOCK.search(page.read_text("utf-8"))]
    if not sys.argv[1:]:
        found.append(run([test_docs.ROOT / "docs" / name for name in test_pages.TUTORIALS], 1))
    sys.exit(not all(found))


if __name__ == "__main__":
    main()
