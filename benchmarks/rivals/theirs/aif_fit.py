"""AIF360's reweighing, then logistic regression. Not private. Needs a Python of its own:
`pip install aif360`."""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from aif360.algorithms.preprocessing import Reweighing
from aif360.datasets import BinaryLabelDataset
from sklearn.linear_model import LogisticRegression


def main() -> None:
    """Read, fit, write."""
    job = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    with np.load(job["rows"]) as rows:
        train, test, y, groups = (
            rows[name] for name in ("train_X", "test_X", "train_y", "train_groups")
        )
    warnings.simplefilter("ignore")
    table = BinaryLabelDataset(
        df=pd.DataFrame({"y": y, "group": groups}),
        label_names=["y"],
        protected_attribute_names=["group"],
    )
    weights = Reweighing([{"group": 0}], [{"group": 1}]).fit_transform(table).instance_weights
    model = LogisticRegression(max_iter=1000, C=10.0).fit(train, y, sample_weight=weights)
    law = np.eye(2)[model.predict(test).astype(int)]
    np.savez(job["out"], law=law, said=json.dumps({"claimed": None, "proved": None}))


if __name__ == "__main__":
    main()
