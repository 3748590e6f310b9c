"""Changes to files that a reader must survive: of values, texts, bytes, archives. Everything hangs
on a seeded source."""

from __future__ import annotations

import copy
import io
import json
import random
import struct
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np

NASTY: list[Any] = [
    *(
        None,
        True,
        False,
        0,
        -1,
        1,
        2,
        10**18,
        10**25,
        -(10**25),
        2**53 + 1,
        1e308,
        -1e308,
        1e-320,
        0.5,
        3.7,
    ),
    *(
        float("nan"),
        float("inf"),
        -float("inf"),
        "",
        "x",
        "\ud800",
        "\0",
        "a" * 5000,
        "inf",
        "nan",
        "3",
        "1e999",
        "-1",
        "é",
    ),
    *(
        [],
        {},
        [[]],
        [1],
        [None],
        {"a": 1},
        {"": None},
        ["x"] * 200,
        [0] * 300,
        [[0.0] * 3] * 2,
        {"number": "inf"},
    ),
    *(
        "<script>",
        "given",
        "pure",
        "renyi",
        "gaussian",
        "records",
        "table",
        "rows",
        "schema",
        "product",
        "marginal",
    ),
]
SNIPPETS = [
    '"',
    "}",
    "\\",
    "9" * 5000,
    "1e400",
    "[",
    "\0",
    "NaN",
    ",",
    "Infinity",
    "-",
    "\\ud800",
    "'",
    "=",
]
SHAPES = [
    *(
        "(1000000000000000,)",
        "(4611686018427387904, 4)",
        "(1000000000,)",
        "(-5,)",
        "(9223372036854775808,)",
    ),
    *(
        "(0, 1000000000000000)",
        "()",
        "((((" * 50,
        "(" * 900,
        f"({'9' * 5000},)",
        "(3.0,)",
        "(3 + 2,)",
    ),
]
Path = tuple[Any, ...]


def paths(value: Any, at: Path = ()) -> Iterator[Path]:
    """Every place in a document."""
    yield at
    if isinstance(value, dict):
        for name in value:
            yield from paths(value[name], (*at, name))
    elif isinstance(value, list):
        for index in range(len(value)):
            yield from paths(value[index], (*at, index))


def of_values(document: Any, draw: random.Random) -> Any:
    """One to three changed values, taken away, doubled, nested or in another's place."""
    changed = copy.deepcopy(document)
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        places = [place for place in paths(changed) if place]
        if not places:
            break
        place = draw.choice(places)
        holder = changed
        for step in place[:-1]:
            holder = holder[step]
        old = holder[place[-1]]
        if draw.random() < 0.1:
            del holder[place[-1]]
        else:
            holder[place[-1]] = _other(old, changed, places, draw)
    return changed


def _other(old: Any, document: Any, places: list[Path], draw: random.Random) -> Any:
    kind = draw.random()
    if kind < 0.5:
        return copy.deepcopy(draw.choice(NASTY))
    if kind < 0.6:
        found = document
        for step in draw.choice(places):
            found = found[step]
        return copy.deepcopy(found)
    if isinstance(old, (int, float)) and not isinstance(old, bool) and kind < 0.75:
        return draw.choice([old + 1, -old, old * 2, float(old), str(old), 0, [old], old - 1])
    if isinstance(old, list) and kind < 0.8:
        return old * draw.choice([2, 0, 7])
    if isinstance(old, dict) and kind < 0.8:
        return old | {draw.choice(["x", "__class__", "version", ""]): 1}
    if kind < 0.87:
        deep: list[Any] = []
        for _ in range(draw.choice([20, 60, 150, 190])):
            deep = [deep]
        return deep
    if isinstance(old, dict) and kind < 0.94:
        wrapped = copy.deepcopy(old)
        for _ in range(draw.choice([5, 40, 90])):
            wrapped = (
                {**copy.deepcopy(old), "event": wrapped}
                if "event" in old
                else {"kind": "composed", "events": [wrapped]}
            )
        return wrapped
    return str(old)[:2000]


def of_text(text: str, draw: random.Random) -> str:
    """A text, most often as it is; else cut, with something put in, or very deep."""
    kind = draw.random()
    if kind < 0.08 and text:
        at = draw.randrange(len(text))
        return text[:at] + draw.choice(SNIPPETS) + text[at + draw.choice([0, 1]) :]
    if kind < 0.1:
        return text[: draw.randrange(len(text) + 1)]
    if kind < 0.105:
        return draw.choice(["[", '{"a":']) * 100_000
    return text.replace(":", ':{"a":' * 3000, 1) if kind < 0.11 else text


def json_text(document: Any, draw: random.Random) -> str:
    """A document that was changed, as text that was perhaps changed, too."""
    return of_text(json.dumps(of_values(document, draw)), draw)


def of_bytes(raw: bytes, draw: random.Random) -> bytes:
    """A few other bytes; sometimes fewer, or some twice."""
    changed = bytearray(raw)
    for _ in range(draw.choice([1, 1, 2, 5, 20])):
        if changed:
            changed[draw.randrange(len(changed))] = draw.choice([draw.randrange(256), 0, 255])
    kind = draw.random()
    if kind < 0.1:
        return bytes(changed[: draw.randrange(len(changed) + 1)])
    if kind < 0.15:
        at = draw.randrange(len(changed) + 1)
        return bytes(changed[:at] + changed[max(0, at - 50) :])
    return bytes(changed)


def header_of(shape: str, kind: str = "<f8") -> bytes:
    """The beginning of an .npy file that claims this shape."""
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def of_archive(raw: bytes, draw: random.Random) -> bytes:
    """An archive of arrays with other arrays, other headers, other members or other bytes."""
    kind = draw.random()
    if kind < 0.25:
        return of_bytes(raw, draw)
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(raw)) as given:
        members = {name: given.read(name) for name in given.namelist()}
    how = draw.choice([zipfile.ZIP_STORED] * 6 + [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
    with zipfile.ZipFile(packed, "w", how) as made:
        for name, content in members.items():
            named = draw.choice([name] * 12 + [f"../{name}", name.upper()])
            made.writestr(zipfile.ZipInfo(named), _of_array(content, draw), compress_type=how)
        if draw.random() < 0.05:
            made.writestr("more.npy", b"x")
    return _of_directory(packed.getvalue(), draw) if draw.random() < 0.15 else packed.getvalue()


def _of_array(content: bytes, draw: random.Random) -> bytes:
    kind = draw.random()
    if kind < 0.25:
        return of_bytes(content, draw)
    if kind < 0.35:
        text = draw.choice(SHAPES)
        return header_of(text) + content[-40:]
    if kind < 0.4:
        length = struct.pack("<I", draw.choice([2**32 - 1, 9000, 0, 70_000]))
        return (
            b"\x93NUMPY"
            + draw.choice([b"\x03\x00", b"\x02\x00", b"\x09\x00"])
            + length
            + b"(" * 1000
        )
    if kind < 0.7:
        array = np.lib.format.read_array(io.BytesIO(content))
        others = [
            lambda: array * np.nan,
            lambda: array * np.inf,
            lambda: array.astype("<f4"),
            lambda: array.reshape(-1),
            lambda: array[:0],
            lambda: np.concatenate([array, array]),
            lambda: array.astype(object),
            lambda: array * 1e308,
            lambda: array * -1,
            lambda: np.asfortranarray(array),
            lambda: array.astype(">f8"),
        ]
        raw = io.BytesIO()
        with np.errstate(all="ignore"):
            np.lib.format.write_array(raw, draw.choice(others)(), allow_pickle=True)
        return raw.getvalue()
    return content


def _of_directory(raw: bytes, draw: random.Random) -> bytes:
    """An encrypted flag, an unknown version, or sizes that are not those of the member, in the
    central directory."""
    changed = bytearray(raw)
    at = changed.find(b"PK\x01\x02")
    if at < 0:
        return raw
    kind = draw.randrange(4)
    if kind == 0:
        changed[at + 8] |= 1
        changed[6] |= 1
    elif kind == 1:
        changed[at + 6] = draw.choice([46, 63, 64, 200])
    elif kind == 2:
        changed[at + 20 : at + 28] = struct.pack("<II", 2**31 - 1, 2**31 - 1)
    else:
        changed[at + 10] = draw.choice([8, 12, 14, 99])
    return bytes(changed)


def described(raw: bytes) -> dict[str, Any]:
    """What the headers of an archive claim, as `model.json` declares it."""
    found = {}
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        for name in archive.namelist():
            with archive.open(name) as opened:
                np.lib.format.read_magic(opened)
                shape, _, kind = np.lib.format.read_array_header_1_0(opened)
            found[name.removesuffix(".npy")] = {"type": kind.str, "shape": list(shape)}
    return found
