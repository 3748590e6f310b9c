"""Fits a model through a door, and is killed at a chosen request."""

from __future__ import annotations

from typing import Any

from crashing_door import kill_at

import fairveil as fv
from fairveil.errors import FairveilError
from fairveil.serving import client as connection


def fit(url: str, token: str, key: str, told: Any, number: int = 0, when: str = "") -> None:
    """Sends the statement, in a list, or the error's words; nothing, where it is killed at the
    `number`-th request."""
    connection.WAIT = 0.2
    if number:
        kill_at("sent", number, when)
    try:
        data = fv.remote(url, "applicants", token=token, key=key)
        statement = fv.FermiClassifier(solver=fv.Descent(rounds=6)).fit(data).privacy_
        data.close()
        told.send([statement.to_json()])
    except FairveilError as error:
        told.send(f"{type(error).__name__}: {error}")
