"""What pages the site has: those of docs/ by kind, one for each public class or function, the
gallery. Needs no Sphinx."""

from __future__ import annotations

import importlib
import inspect
import re
import shutil
from pathlib import Path

import commands
import names as named

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
LINK = re.compile(r"\]\(([\w/]+\.md)\)")
FRONT = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CODE_OF_CONDUCT.md",
    "CITATION.cff",
    "LICENSE",
)
SECTIONS = {
    "Tutorials": "tutorials",
    "How-to": "how_to",
    "Reference": "reference",
    "Explanation": "explanation",
}
INNER = {
    "docs/cli.md": "docs/commands.md",
    "docs/theory.md": "docs/theory/*.md",
    "CONTRIBUTING.md": "[CS][OE][DC]*.md",
}
"""Pages that have pages of their own below them."""
CONTENTS = ("ReleasedCounts", "HolderData")
"""Contents of public classes, beside those that are called so."""


def checker() -> str:
    """The page that checks a privacy statement: one file that needs no other and asks no server."""
    here = Path(__file__).parent
    page = (here / "check.html").read_text("utf-8")
    schema = (ROOT / "src" / "fairveil" / "statement" / "schema.json").read_text("utf-8")
    script = (here / "static" / "check.js").read_text("utf-8")
    return page.replace("{{schema}}", schema).replace("{{checker}}", script)


def sections() -> dict[str, list[str]]:
    """The pages of docs/index.md by the name of their section's page, in their order."""
    found = {}
    for part in re.split(r"^## ", (DOCS / "index.md").read_text("utf-8"), flags=re.MULTILINE)[1:]:
        head = part.partition(":")[0].strip()
        found[SECTIONS[head]] = list(dict.fromkeys(LINK.findall(part)))
    return found


def public() -> dict[str, list[str]]:
    """Room -> names of the classes and functions that are at home there: each has a page."""
    found: dict[str, list[str]] = {}
    for name in named.ROOMS:
        room = importlib.import_module(name)
        own = [(one, getattr(room, one)) for one in named.names_of(room)]
        callables = [
            (one, value) for one, value in own if inspect.isclass(value) or inspect.isroutine(value)
        ]
        found[name] = [one for one, value in callables if named.home_of(value, room) == name]
    return found


def place(room: str, name: str) -> str:
    """The name of a page; a function that differs from a class by its capital letter alone has a
    longer one."""
    module = importlib.import_module(room)
    capital = name[:1].upper() + name[1:]
    return f"{room}.{name}{'_function' if name != capital and hasattr(module, capital) else ''}"


def object_page(room: str, name: str) -> str:
    """One class with its members, or one function, in reStructuredText."""
    value = getattr(importlib.import_module(room), name)
    lines = [name, "=" * len(name), "", f".. currentmodule:: {room}", ""]
    if inspect.isclass(value):
        lines += [f".. autoclass:: {name}", *_members(value)]
    else:
        lines += [f".. autofunction:: {name}"]
    return "\n".join(lines) + "\n"


def _members(kind: type) -> list[str]:
    """Options of a class's page. Contents that are a class of their own are the public class's for
    a reader."""
    if issubclass(kind, BaseException):
        return []
    in_two = any(
        base.__name__.endswith("Contents") or base.__name__ in CONTENTS for base in kind.__bases__
    )
    return ["   :members:", *(["   :inherited-members:"] if in_two else [])]


def room_page(room: str, names: list[str]) -> str:
    """One room: a sentence, a list of its pages, and its constants."""
    module = importlib.import_module(room)
    lines = [f"# {room}", "", named.sentence_of(module), ""]
    if names:
        lines += [
            "```{toctree}",
            ":maxdepth: 1",
            "",
            *(f"{name} <{place(room, name)}>" for name in names),
            "```",
            "",
        ]
    for name in named.names_of(module):
        value = getattr(module, name)
        if inspect.ismodule(value) or name in names:
            continue
        if inspect.isclass(value) or inspect.isroutine(value):
            home = named.home_of(value, module)
            lines += [f"- `{name}`: see [{home}.{name}]({place(home, name)}.rst)"]
        else:
            lines += ["", f"## {name}", "", *named.constant(module, name)]
    return "\n".join(lines) + "\n"


def api_page(rooms: list[str]) -> str:
    """All packages with public names, each with the sentence that it says of itself."""
    lines = [
        f"- [{room}]({room}.md): {named.sentence_of(importlib.import_module(room))}"
        for room in rooms
    ]
    return "\n".join(
        (
            "# Public names",
            "",
            *lines,
            "",
            "```{toctree}",
            ":hidden:",
            ":maxdepth: 1",
            "",
            *rooms,
            "```",
            "",
        )
    )


def section_page(name: str, listed: list[str]) -> str:
    """A section of docs/index.md with the tree of its pages."""
    text = (DOCS / "index.md").read_text("utf-8")
    title = next(head for head, place in SECTIONS.items() if place == name)
    (part,) = (
        one for one in re.split(r"^## ", text, flags=re.MULTILINE)[1:] if one.startswith(title)
    )
    head, _, body = part.partition("\n")
    tree = ["```{toctree}", ":hidden:", ":maxdepth: 1", "", *listed, "```"]
    return "\n".join((f"# {head.strip()}", "", body.strip(), "", *tree, ""))


def front_page() -> str:
    """The README, and the tree of the whole site."""
    tree = [
        "```{toctree}",
        ":hidden:",
        "",
        *(f"{title} <docs/{place}>" for title, place in SECTIONS.items()),
        "API <api/index>",
        "Gallery <gallery/index>",
        "Changes <CHANGELOG>",
        "Contribute <CONTRIBUTING>",
        "```",
    ]
    return (ROOT / "README.md").read_text("utf-8") + "\n" + "\n".join(tree) + "\n"


def stage(folder: Path) -> None:
    """Everything that Sphinx reads, in one folder: it is made anew."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in FRONT:
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, folder / name)
    hidden = shutil.ignore_patterns("__pycache__", "site")
    for name in ("docs", "examples", "benchmarks", "tests"):
        chosen = (
            hidden
            if name != "tests"
            else shutil.ignore_patterns("__pycache__", "files_*", "*.gz", "*.npz", "*.db")
        )
        shutil.copytree(ROOT / name, folder / name, ignore=chosen)
    (folder / "index.md").write_text(front_page(), "utf-8")
    (folder / "docs" / "commands.md").write_text(commands.page(), "utf-8")
    for name, listed in sections().items():
        (folder / "docs" / f"{name}.md").write_text(
            section_page(name, [page.removesuffix(".md") for page in listed]), "utf-8"
        )
    for page in (folder / "benchmarks" / "results").glob("*.md"):
        page.write_text(f"---\norphan: true\n---\n\n{page.read_text('utf-8')}", "utf-8")
    for page in folder.rglob("*.md"):
        page.write_text(relinked(page.read_text("utf-8")), "utf-8")
    for name, inner in INNER.items():
        page = folder / name
        listed = sorted(
            one.relative_to(page.parent).with_suffix("").as_posix()
            for one in folder.glob(inner)
            if one != page
        )
        tree = "\n".join(("```{toctree}", ":hidden:", ":maxdepth: 1", "", *listed, "```"))
        page.write_text(f"{page.read_text('utf-8')}\n{tree}\n", "utf-8")
    api = folder / "api"
    api.mkdir()
    rooms = public()
    for room, names in rooms.items():
        (api / f"{room}.md").write_text(room_page(room, names), "utf-8")
        for name in names:
            (api / f"{place(room, name)}.rst").write_text(object_page(room, name), "utf-8")
    (api / "index.md").write_text(api_page(list(rooms)), "utf-8")
    stage_gallery(folder / "scripts")


def relinked(text: str) -> str:
    """Links to pages that the site has elsewhere."""
    return text.replace("](docs/index.md)", "](index.md)")


def stage_gallery(folder: Path) -> None:
    """The gallery's scripts, with a heading each; case studies keep their text."""
    folder.mkdir()
    for path in sorted((DOCS / "site" / "gallery").glob("*.py")):
        shutil.copy(path, folder / path.name)
    shutil.copy(DOCS / "site" / "gallery" / "README.rst", folder / "README.rst")
    for path in sorted((ROOT / "examples").glob("*.py")):
        (folder / f"case_{path.name}").write_text(with_heading(path.read_text("utf-8")), "utf-8")


def with_heading(script: str) -> str:
    """A script whose docstring begins with a heading, and has its other paragraphs as they are."""
    _, doc, rest = script.split('"""', 2)
    title, _, text = doc.strip().partition("\n")
    head = title.split(":")[0].rstrip(".")
    shown = "\n".join(
        f"| {escaped(line)}" if line.strip() else "" for line in (title, *text.strip().splitlines())
    )
    return f'r"""\n{head}\n{"=" * len(head)}\n\n{shown}\n"""{rest}'


def escaped(line: str) -> str:
    """Without marks of reStructuredText."""
    return re.sub(r"([*|_`\\])", r"\\\1", line)
