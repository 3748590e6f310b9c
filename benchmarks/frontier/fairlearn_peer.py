"""fairlearn's ExponentiatedGradient on one split, not private. Run by `frontiers.py` under a Python
that has fairlearn:

    PYTHON fairlearn_peer.py SPLIT.npz parity|odds BOUND...        prints JSON

SPLIT.npz: dense training and test matrices, labels, groups. The base learner is scikit-learn's
logistic regression at its defaults but for the solver. What is measured is the mixture's expected
error and the gap of its expected rates, so that no draw adds noise.
"""

import json
import sys
import time
import warnings

import numpy as np
from fairlearn.reductions import DemographicParity, EqualizedOdds, ExponentiatedGradient
from sklearn.linear_model import LogisticRegression


def main() -> None:
    file, notion, *bounds = sys.argv[1:]
    warnings.simplefilter("ignore")
    with np.load(file) as rows:
        X, y, group = rows["train"], rows["train_labels"], rows["train_groups"]
        test, labels, groups = rows["test"], rows["test_labels"], rows["test_groups"]
    found = []
    for bound in map(float, bounds):
        asked = (DemographicParity if notion == "parity" else EqualizedOdds)(difference_bound=bound)
        start = time.perf_counter()
        model = ExponentiatedGradient(LogisticRegression(solver="newton-cholesky"), asked)
        model.fit(X, y, sensitive_features=group)
        seconds = time.perf_counter() - start
        share = model._pmf_predict(test)[:, 1]

        def gap(among: np.ndarray, share: np.ndarray = share) -> float:
            return abs(
                float(share[among & (groups == 0)].mean() - share[among & (groups == 1)].mean())
            )

        error = float(np.where(labels == 1, 1 - share, share).mean())
        everyone = np.ones(len(labels), bool)
        gaps = {"parity": gap(everyone), "odds": max(gap(labels == 1), gap(labels == 0))}
        found.append({"bound": bound, "error": error, "gap": gaps[notion], "seconds": seconds})
    print(json.dumps(found))


if __name__ == "__main__":
    main()
