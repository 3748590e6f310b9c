"""Tables of other libraries beside every hostile value in every place: one of our errors, or a data
set, and nothing else."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairveil.compat import fairlearn, hugging_face
from fairveil.errors import FairveilError, InputError

ROWS = 12
HOSTILE: list[Any] = [
    *(
        None,
        "",
        "yes",
        b"x",
        True,
        -1,
        10**400,
        float("nan"),
        np.float64("nan"),
        np.datetime64("NaT"),
    ),
    *(
        [],
        {},
        set(),
        object(),
        len,
        ["a"] * 3,
        ["a"] * ROWS,
        [["a"]] * ROWS,
        {"sex": 3},
        {"sex": None},
        {"sex": "m"},
    ),
    *(
        np.full(ROWS, np.nan),
        np.full(ROWS, -1.0),
        np.ones(ROWS - 1),
        np.ones((ROWS, 2)),
        np.array("a"),
    ),
    *(pd.DataFrame(), pd.DataFrame({"a": [np.nan] * ROWS}), pd.DataFrame({"sex": ["m"] * ROWS})),
]


def people() -> dict[str, Any]:
    """What `to_dataset` takes."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.uniform(0, 1, ROWS), "size": rng.integers(3, size=ROWS)})
    return {
        "X": X,
        "y": np.array(["no", "yes"] * (ROWS // 2)),
        "sensitive_features": pd.DataFrame({"sex": ["f", "m"] * (ROWS // 2)}),
    }


def refuses(call: Any, *given: Any, **options: Any) -> bool:
    """Whether it raises one of our errors; others go on."""
    try:
        call(*given, **options)
    except FairveilError:
        return True
    return False


def test_data_sets_of_hugging_face() -> None:
    pytest.importorskip("datasets", reason="datasets is not installed")
    whole = hugging_face.to_dataset(**people(), target="hired")
    refused = []
    for value in HOSTILE:
        refused += [
            refuses(hugging_face.to_dataset, **people() | {name: value}, target="hired")
            for name in people()
        ]
        refused.append(refuses(hugging_face.to_dataset, **people(), target=value))
        refused.append(refuses(hugging_face.from_dataset, value, target="hired", sensitive=["sex"]))
        assert refused[-1]
        for name in ("target", "sensitive", "features", "weight"):
            options = {"target": "hired", "sensitive": ["sex"]} | {name: value}
            refused.append(refuses(hugging_face.from_dataset, whole, **options))
    assert np.mean(refused) > 0.8
    assert not all(refused)


@pytest.mark.parametrize(
    "weights", [["a"] * ROWS, [-1.0] * ROWS, [float("nan")] * ROWS, [None] * ROWS]
)
def test_weights_that_are_none_are_refused(weights: list[Any]) -> None:
    pytest.importorskip("datasets", reason="datasets is not installed")
    whole = hugging_face.to_dataset(**people(), target="hired").add_column("w", weights)
    assert refuses(hugging_face.from_dataset, whole, target="hired", sensitive=["sex"], weight="w")


def test_data_sets_of_aif360() -> None:
    pytest.importorskip("aif360", reason="aif360 is not installed")
    from fairveil.compat import aif360

    options: dict[str, Any] = {
        "favourable": "yes",
        "privileged": {"sex": ["m"]},
        "sample_weight": np.ones(ROWS),
    }
    assert not refuses(aif360.to_dataset, **people(), **options)
    refused = []
    for value in HOSTILE:
        refused.append(refuses(aif360.from_dataset, value))
        assert refused[-1]
        for name in (*people(), *options):
            refused.append(refuses(aif360.to_dataset, **{**people(), **options, name: value}))
    assert np.mean(refused) > 0.8


@pytest.mark.parametrize("place", [0, 1, 2])
def test_measures_of_fairlearn(place: int) -> None:
    y, sex = people()["y"], people()["sensitive_features"]["sex"]
    refused = []
    for value in HOSTILE:
        given = [y, y, sex]
        given[place] = value
        refused.append(
            refuses(
                fairlearn.demographic_parity_difference,
                given[0],
                given[1],
                sensitive_features=given[2],
            )
        )
    assert np.mean(refused) > 0.5


@pytest.mark.parametrize("name", ["mlflow", "datasets", "aif360"])
def test_a_library_that_does_not_import_is_named(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An old version beside new ones of its requirements, as an mlflow from before protobuf 5."""
    (tmp_path / f"{name}.py").write_text("raise ImportError('cannot import name x')")
    monkeypatch.syspath_prepend(str(tmp_path))
    for known in [one for one in sys.modules if one.partition(".")[0] == name]:
        monkeypatch.delitem(sys.modules, known)
    module = {"mlflow": "mlflow_model", "datasets": "hugging_face", "aif360": "aif360"}[name]
    library = vars(importlib.import_module(f"fairveil.compat.{module}"))[
        "_mlflow" if name == "mlflow" else "_library"
    ]
    with pytest.raises(InputError, match=f"{name} that imports.*cannot import name x"):
        library()
