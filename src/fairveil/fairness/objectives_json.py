"""What objectives are made of as plain JSON values, and back: tables of costs, weights of groups,
rates, keys of classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import InputError
from ..tables import keys
from .rates import ErrorRate, Event, PredictionRate, Rate

TABLES = ("costs", "payoff")


def written(value: object, *, of: str) -> Any:
    """A field of an objective."""
    if isinstance(value, PredictionRate | ErrorRate):
        return _rate_to_dict(value)
    if isinstance(value, Mapping):
        return {
            "by": [
                [keys.to_json(keys.plain(key, of=of), of=of), _number(number, of)]
                for key, number in value.items()
            ]
        }
    if of in TABLES and value is not None:
        table = np.asarray(value)
        return {
            "table": [
                [_number(number, of) for number in line]
                for line in table.reshape(len(table), -1).tolist()
            ]
        }
    return keys.to_json(keys.plain(value, of=of), of=of)


def read(value: object, *, of: str) -> Any:
    """The inverse of `written`; anything unexpected is an error that says what."""
    if not isinstance(value, Mapping):
        return keys.plain(value, of=of)
    if set(value) in ({"event"}, {"event", "prediction"}):
        event = Event.from_dict(value["event"])
        return (
            PredictionRate(value["prediction"], event)
            if "prediction" in value
            else ErrorRate(event)
        )
    ((word, content),) = value.items() if len(value) == 1 else (("", None),)
    lines = (
        content
        if isinstance(content, list) and all(isinstance(line, list) for line in content)
        else None
    )
    if word == "by" and lines is not None and all(len(line) == 2 for line in lines):
        return {keys.plain(key, of=of): _number(number, of) for key, number in lines}
    if word == "table" and lines and len({len(line) for line in lines}) == 1:
        return np.array([[_number(number, of) for number in line] for line in lines])
    expected = "a plain value, or an object with 'by', 'table' or 'event'"
    raise InputError.expected(expected, of=of, got=value, remedy="Write it with to_dict().")


def _rate_to_dict(rate: Rate) -> dict[str, Any]:
    predicted = (
        {"prediction": keys.to_json(rate.prediction, of="prediction")}
        if isinstance(rate, PredictionRate)
        else {}
    )
    return {"event": rate.event.to_dict()} | predicted


def _number(value: object, of: str) -> float:
    plain = keys.plain(value, of=of)
    if isinstance(plain, bool) or not isinstance(plain, int | float):
        raise InputError.expected("numbers", of=of, got=plain, remedy="Write it with to_dict().")
    return float(plain)
