"""A finished base's scores made fair, in a process of its own: `python after.py job.json`, after a
program of `theirs`.

"ours": `OddsPostProcessor` with the other half of epsilon and delta, under the base's relation;
both halves add up. "threshold": fairlearn's `ThresholdOptimizer`, which reads labels and groups
without noise.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

import fairveil as fv
from hard.fairlearn_fits import NOTIONS
from rivals.systems import SYSTEMS


class Scored(ClassifierMixin, BaseEstimator):
    """A classifier whose only column is its score."""

    def __init__(self):
        self.classes_ = np.array([0, 1])

    def fit(self, X, y):
        """Nothing."""
        return self

    def __sklearn_is_fitted__(self):
        return True

    def decision_function(self, X):
        """The column."""
        return np.asarray(X)[:, 0]

    def predict(self, X):
        """Whether it is above 0."""
        return (np.asarray(X)[:, 0] > 0).astype(np.int64)

    def predict_proba(self, X):
        """By the logistic function."""
        share = 1.0 / (1.0 + np.exp(-np.clip(self.decision_function(X), -500, 500)))
        return np.column_stack([1.0 - share, share])


def main() -> None:
    """Read, fit, write."""
    job = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    with np.load(job["rows"]) as rows, np.load(job["out"]) as base:
        y, groups, others = rows["train_y"], rows["train_groups"], rows["test_groups"]
        scores, answered = base["train_scores"][:, np.newaxis], base["test_scores"][:, np.newaxis]
        said = json.loads(str(base["said"]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if job["after"] == "ours":
            relation = SYSTEMS[job["system"]].relation
            model = fv.OddsPostProcessor(
                Scored(),
                f"{job['notion']}:{job['bound']:g}",
                epsilon=job["epsilon"] / 2,
                delta=0.5 / len(y) ** 2,
                neighbours=relation,
                public_base=True,  # its spend is added below
                random_state=job["seed"],
            ).fit(scores, y, sensitive_features=groups)
            law = model.predict_proba(answered, sensitive_features=others)
            said |= {name: said[name] + model.privacy_.epsilon for name in ("claimed", "proved")}
        else:
            from fairlearn.postprocessing import ThresholdOptimizer

            model = ThresholdOptimizer(
                estimator=Scored(),
                constraints=NOTIONS[job["notion"]][1],
                objective="accuracy_score",
                predict_method="predict_proba",
                prefit=True,
            ).fit(scores, y, sensitive_features=groups)
            law = model._pmf_predict(answered, sensitive_features=others)
            said |= {"claimed": said["claimed"], "proved": None}
    np.savez(job["out"], law=law, said=json.dumps(said))


if __name__ == "__main__":
    main()
