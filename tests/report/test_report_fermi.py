"""Pages of models whose gaps were made expensive and not bounded, linear ones and networks: no
target, and the twin says null."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import fairveil as fv
from fairveil.errors import InputError
from fairveil.figures import GapFigure
from fairveil.report import GroupSection, Report, certain, write

torch.set_num_threads(1)


@pytest.mark.parametrize("network", [False, True])
@pytest.mark.parametrize("protects", ["records", "sensitive_features"])
def test_page_and_twin_of_a_penalised_model(tmp_path: Path, network: bool, protects: str) -> None:
    rng = np.random.default_rng(0)
    A = rng.integers(3, size=800)
    X = rng.normal(size=(800, 2)) + 0.5 * A[:, np.newaxis]
    y = (X.sum(axis=1) > 1).astype(int)
    model = nn.Linear(2, 1) if network else None
    clf = fv.FermiClassifier(
        "equalized_odds", 2.0, model, protects=protects, solver=fv.Descent(rounds=5), random_state=0
    )
    clf.fit(X, y, sensitive_features=A)
    widest: Any = clf.gap_report_.largest
    report = Report(
        "A model",
        statement=clf.privacy_,
        gaps=(
            GapFigure(
                "equalized odds",
                None,
                widest.value,
                notes=(f"{widest.what}, with noise {widest.noise:.3f}.",),
            ),
        ),
        tables=(GroupSection(fv.group_table(y, clf.predict(X), A)),),
        method="FermiClassifier",
    )
    made = write(tmp_path / "report.html", report)
    page, twin = (
        html.unescape(made.page.read_text("utf-8")),
        json.loads(made.twin.read_text("utf-8")),
    )
    (gap,) = twin["gaps"]
    assert (gap["target"], gap["training_noisy"]) == (None, widest.value)
    assert "no target" in page
    assert widest.what in page
    assert twin["statement"] == json.loads(clf.privacy_.to_json())
    assert ("USER CODE WAS TRUSTED" in " ".join(twin["stamps"]).upper()) == network
    words = " ".join(item["words"] for item in twin["statement_words"])
    assert ("float32 arithmetic" in words) == network
    assert all(
        item["words"] in page for item in twin["statement_words"] if item["heading"] != "Mechanisms"
    )
    assert all(text in page for row in twin["releases"]["rows"] for text in row)


def test_there_is_nothing_certain_of_it() -> None:
    with pytest.raises(InputError, match="others have none"):
        certain(None)  # type: ignore[arg-type]
