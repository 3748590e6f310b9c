"""How one class of estimators is written and read, and what all readers refuse with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..._json import Document, Node
from ...errors import InputError
from ...models import LinearModel, Model, RegressionModel
from ...models.folders import LARGEST_TEXT
from ..reading import coding_json

ESTIMATOR_FILE, STATEMENT_FILE = "estimator.json", "statement.json"


DOCUMENT = Document(
    ESTIMATOR_FILE, "It is not what was saved: save the estimator again.", largest=LARGEST_TEXT
)


@dataclass(frozen=True)
class Kind:
    """How one class of estimators is written: `content` beside what all write, its `fields`
    and read: `revive` sets the fitted
    attributes of a new estimator from content, model, and the base (its own, read back, or handed
    in)."""

    cls: type[Any]
    fields: frozenset[str]
    content: Callable[[Any], dict[str, Any]]
    revive: Callable[[Any, Node, Model | None, Any], None]


def broken(expected: str, got: object) -> InputError:
    return InputError(str(DOCUMENT.refusal(expected, got)))


def coding_of(content: Node, models: Sequence[LinearModel | RegressionModel]) -> Any:
    coding = coding_json.from_dict(content["coding"])
    layout = coding.layout
    for model in models:
        if (layout.numbers, tuple(layout.code_sizes)) != (model.numbers, model.code_sizes):
            raise broken(
                "a coding that fits the model",
                f"{layout.numbers} numbers and codes of {layout.code_sizes}",
            )
    return coding
