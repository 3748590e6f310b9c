"""Values as plain JSON and back; see the guarantees of `_codec`."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pytest

from fairveil._codec import Codec, Kind, UnwrittenError
from fairveil._json import Document
from fairveil.errors import InputError

DOCUMENT = Document("paper", "Write it anew.")


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True)
class Point:
    x: float
    at: tuple[int, ...] = ()
    name: Literal["a", "b"] = "a"


@dataclass(frozen=True, eq=False)
class Whole:
    points: tuple[Point, ...]
    best: Point | None
    table: npt.NDArray[np.float64]
    truth: npt.NDArray[np.bool_]
    keys: tuple[Hashable, ...]
    colour: Colour
    value: str | int | float | bool
    kept: object = None


@dataclass(frozen=True)
class Stranger:
    x: float = 0.0


class Sub(Point):
    pass


def _rising(found: dict[str, Any], node: Any) -> None:
    if list(found["at"]) != sorted(found["at"]):
        node["at"].refuse("rising numbers", found["at"])


CODEC = Codec(Kind(Point, check=_rising), Kind(Whole), Kind(Stranger, name="other"))
BITS = (0.1, -0.0, 5e-324, 1.7976931348623157e308, math.inf, -math.inf, math.nan, 3.0)


def back(value: Any, of: Any) -> Any:
    return CODEC.read(DOCUMENT.node(json.dumps(CODEC.write(value, of), allow_nan=False)), of)


def whole(**fields: Any) -> Whole:
    usual: dict[str, Any] = {
        "points": (Point(0.5), Point(1.0, (1, 2), "b")),
        "best": None,
        "table": np.array([BITS, BITS]),
        "truth": np.array([[True], [False]]),
        "keys": ("f", ("m", 3), True),
        "colour": Colour.RED,
        "value": "nan",
    }
    return Whole(**usual | fields)


def test_guarantee_1_what_was_written_is_read() -> None:
    one = whole()
    again = back(one, Whole)
    assert again.table.tobytes() == one.table.tobytes()
    assert again.truth.dtype == np.bool_
    assert (again.truth == one.truth).all()
    for name in ("points", "best", "keys", "colour", "value", "kept"):
        assert getattr(again, name) == getattr(one, name)
    assert back(whole(best=Point(2.0)), Whole).best == Point(2.0)
    for value in (1, 1.0, True, "1"):
        assert type(back(whole(value=value), Whole).value) is type(value)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        "nan",
        0.1,
        math.inf,
        [1, [2.5, "a"]],
        {"f": 1.0, ("m", 2): [math.inf]},
        Point(1.0),
        [Stranger(2.0), {"a": Point(0.0)}],
    ],
)
def test_guarantee_1_where_nothing_is_declared(value: Any) -> None:
    assert back(value, object) == value


def test_guarantee_1_arrays_where_nothing_is_declared() -> None:
    for array in (np.arange(6).reshape(2, 3), np.array([[0.1, math.nan]]), np.zeros((0, 2))):
        again = back(array, object)
        assert again.dtype == array.dtype
        assert np.array_equal(again, array, equal_nan=True)


def changed(path: list[Any], value: Any) -> Any:
    out = CODEC.write(whole(), Whole)
    at = out
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return out


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        (["type"], "Point", "type"),
        (["more"], 1, "fields"),
        (["points"], {}, "points: expected a list"),
        (["points", 0, "x"], "0.5", r"points\[0\]\.x: expected a number"),
        (["points", 0, "x"], True, r"points\[0\]\.x"),
        (["points", 0], {"type": "other", "x": 0.5}, r"points\[0\]\.type: expected one of"),
        (["points", 0, "type"], ["Point"], r"points\[0\]\.type"),
        (["points", 1, "at"], [2, 1], r"points\[1\]\.at: expected rising numbers"),
        (["points", 1, "at"], [1.0], r"at\[0\]: expected a whole number"),
        (["points", 1, "name"], "c", "name: expected one of"),
        (["best"], 3, "best"),
        (["best"], {"type": "os.system", "x": "ls"}, "best.type"),
        (["table", "shape"], [2**60, 2**60], "shape"),
        (["table", "shape"], [2, 9], "values: expected a list of 18"),
        (["table", "shape"], [1] * 9, "at most 8 axes"),
        (["table", "values", 0], None, "values"),
        (["truth", "values", 0], 1, "true or false"),
        (["keys", 0], {}, "keys"),
        (["colour"], "BLUE", "colour: expected one of"),
        (["value"], [], "value"),
        (["kept"], {"a": 1}, "kept: expected a field 'type'"),
        (["kept"], {"type": "number", "value": "five"}, "kept.value: expected a number"),
        (["kept"], {"type": "mapping", "pairs": [[{}, 1]]}, "pairs"),
    ],
)
def test_guarantee_2_what_is_not_declared_is_refused(path: Any, value: Any, place: str) -> None:
    with pytest.raises(InputError, match=place) as caught:
        CODEC.read(DOCUMENT.node(json.dumps(changed(path, value))), Whole)
    assert str(caught.value).startswith("paper")


def test_guarantee_2_only_listed_classes_are_written() -> None:
    with pytest.raises(UnwrittenError, match="set"):
        CODEC.write({1, 2})
    with pytest.raises(UnwrittenError, match="Sub"):
        CODEC.write(Sub(1.0))
    with pytest.raises(UnwrittenError, match="object"):
        CODEC.write(np.array([None]))
    assert CODEC.with_kinds(Kind(Colour)).write(Colour.RED) == "RED"
