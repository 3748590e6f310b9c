"""Page and twin on disk: both whole, or what was there before."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from ..errors import InputError
from .numbers import to_dict, to_json
from .page import page
from .whole import Report

SUFFIXES = (".html", ".htm")


@dataclass(frozen=True)
class Written:
    """Where a report lies."""

    page: Path
    twin: Path


def write(path: str | os.PathLike[str], report: Report) -> Written:
    """Write the page to `path` (`report.html`, or a folder for it) and its JSON twin beside it
    (`report.json`).

    Both are made in memory first and reach the disk under other names, so that bad input, a full
    disk or an interruption leave what was there. Files of these names are replaced.
    """
    if not isinstance(report, Report):
        raise InputError.expected(
            "a Report", of="report", got=report, remedy="Pass Report('My model', ...)."
        )
    target = Path(path)
    if target.is_dir():
        target = target / "report.html"
    if target.suffix.lower() not in SUFFIXES:
        remedy = "Name the file report.html, for example."
        raise InputError.expected(
            "a file that ends in .html, or a folder", of="path", got=str(target), remedy=remedy
        )
    twin = target.with_suffix(".json")
    numbers = to_dict(report, twin=twin.name)
    texts = {twin: to_json(numbers), target: page(report, numbers)}
    contents = {file: _bytes(text) for file, text in texts.items()}
    target.parent.mkdir(parents=True, exist_ok=True)
    _replace(contents)
    return Written(target, twin)


def _bytes(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        got, remedy = text[error.start : error.end], "Use texts that can be written as UTF-8."
        raise InputError.expected(
            "letters that can be written", of="report", got=got, remedy=remedy
        ) from None


def _replace(contents: dict[Path, bytes]) -> None:
    for file in contents:
        if file.is_dir():
            remedy = "Pass another path."
            raise InputError.expected(
                "a file name that is free", of="path", got=str(file), remedy=remedy
            )
    made = {file: file.with_name(f".{file.name}.{secrets.token_hex(6)}.part") for file in contents}
    try:
        for file, content in contents.items():
            with open(made[file], "xb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
        for file, part in made.items():
            os.replace(part, file)
    finally:
        for part in made.values():
            part.unlink(missing_ok=True)
