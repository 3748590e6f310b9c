"""Build the site from this folder and the installed packages: `make docs`, or
`python docs/site/build.py [FOLDER]`.

Warnings are errors. After the build every link of every page is followed, nothing may be loaded
from elsewhere, all of it may weigh at most 20 MB, and a sample of pages is looked at in a browser,
where there is one.
"""

from __future__ import annotations

import re
import shutil
import sys
import time
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import browser
import pages
from sphinx.cmd.build import main as sphinx

MOST_BYTES = 20_000_000
LOADS = {"script": "src", "link": "href", "img": "src", "iframe": "src"}

MENDED = (
    ('<th class="head"><p></p></th>', "<td></td>"),  # an empty corner heads nothing
    (' role="doc-biblioentry"', ""),
    ('<div role="list" class="citation-list">', '<div class="citation-list">'),
    (
        '<summary><span class="toctree-toggle"',
        '<summary aria-label="pages below"><span class="toctree-toggle"',
    ),
)
"""What Sphinx and its themes write, and what those who hear a page need instead."""
COVER = re.compile(
    r'<a class="reference internal" href="([^"]+)"><span '
    r'class="doc">([^<]+)</span></a>(?=</p>\s*<div class="sphx)'
)
"""The link over a picture of the gallery: its words are not shown, so it needs a name."""


class Page(HTMLParser):
    """The links and the ids of one page, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.loads: list[str] = []
        self.wrong: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value for name, value in attrs if value is not None}
        self.ids |= {found[name] for name in ("id", "name") if name in found}
        if tag == "img" and "alt" not in found:  # an empty one is decoration beside its own words
            self.wrong.append(f"{found.get('src')} has no text alternative")
        if tag == "html" and "lang" not in found:
            self.wrong.append("names no language")
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if (
            tag in LOADS
            and LOADS[tag] in found
            and found.get("rel") not in ("canonical", "search", "index")
        ):
            self.loads.append(found[LOADS[tag]])


def mend(folder: Path) -> None:
    """Pages as they should have been written."""
    for path in folder.rglob("*.html"):
        text = path.read_text("utf-8")
        for old, new in MENDED:
            text = text.replace(old, new)
        path.write_text(
            COVER.sub(r'<a class="reference internal" href="\1" aria-label="\2"></a>', text),
            "utf-8",
        )


def problems(folder: Path) -> list[str]:
    """Links that lead nowhere, what is loaded from elsewhere, and too much weight."""
    read = {path.resolve(): Page(path.read_text("utf-8")) for path in folder.rglob("*.html")}
    found = []
    for path, page in read.items():
        here = path.relative_to(folder.resolve())
        found += [f"{here}: {wrong}" for wrong in page.wrong]
        found += [
            f"{here} loads {load}" for load in page.loads if re.match(r"(?:https?:)?//", load)
        ]
        for link in dict.fromkeys(
            (
                *page.links,
                *(load for load in page.loads if "//" not in load and "data:" not in load),
            )
        ):
            if re.match(r"[a-z]+:|//", link):
                continue
            place, _, anchor = link.partition("#")
            target = (path.parent / unquote(place.partition("?")[0])).resolve() if place else path
            if not target.exists():
                found.append(f"{here}: {link} leads nowhere")
            elif anchor and target in read and unquote(anchor) not in read[target].ids:
                found.append(f"{here}: {link} has no such place")
    for style in folder.rglob("*.css"):
        found += [
            f"{style.name} loads {url}"
            for url in re.findall(r"url\([\"']?(https?://[^)]+)", style.read_text("utf-8"))
        ]
    weight = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    if weight > MOST_BYTES:
        found.append(f"the site weighs {weight:,} bytes; at most {MOST_BYTES:,}")
    print(f"{len(read)} pages, {weight / 1e6:.1f} MB")
    return found


def main() -> None:
    """Stage, build, check."""
    started = time.monotonic()
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "build/site").resolve()
    staged = out.parent / "staged"
    pages.stage(staged)
    shutil.rmtree(out, ignore_errors=True)
    options = [
        "-q",
        "-W",
        "--keep-going",
        "-c",
        str(Path(__file__).parent),
        "-d",
        str(out.parent / "doctrees"),
    ]
    done = sphinx(["-b", "html", *options, str(staged), str(out)])
    for name in ("_sources", ".buildinfo", "_static/webpack-macros.html"):
        path = out / name
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
    if done:
        sys.exit(done)
    (out / "check.html").write_text(pages.checker(), "utf-8")
    mend(out)
    wrong = [*problems(out), *browser.problems(out)]
    print("\n".join(wrong[:50]))
    print(f"built in {time.monotonic() - started:.0f} s: {out / 'index.html'}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
