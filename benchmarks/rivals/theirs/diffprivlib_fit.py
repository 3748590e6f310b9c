"""diffprivlib's logistic regression. Needs a Python of its own, because 0.6.6 does not import
beside scikit-learn 1.9:

    python -m venv dpl && dpl/bin/pip install diffprivlib 'scikit-learn<1.8'

"diffprivlib-as-is" is what its page shows: the norm of the rows and an intercept. The others scale
rows to a norm of at most 1, with a column of ones for the intercept, which makes what is claimed
hold; and they claim what makes the proved epsilon the one that is asked for (`rivals/truth.py`).
The solver is given iterations enough: the proof is of the exact minimiser.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
from diffprivlib.models import LogisticRegression

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from rivals.truth import diffprivlib_claim, diffprivlib_logistic


def main() -> None:
    """Read, fit, write."""
    job = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    with np.load(job["rows"]) as rows:
        train, test, y = rows["train_X"], rows["test_X"], rows["train_y"]
        # numbers lie in [-1, 1]
        norm = float(np.sqrt(rows["train_numbers"].shape[1] + rows["train_codes"].shape[1]))
    asked = job["epsilon"] / 2 if job["after"] else job["epsilon"]
    as_is = job["system"] == "diffprivlib-as-is"
    if not as_is:
        train, test = (
            np.column_stack([X, np.ones(len(X))]) / np.hypot(norm, 1.0) for X in (train, test)
        )
        norm, claimed = 1.0, diffprivlib_claim(asked, 1.0)
    else:
        claimed = asked
    model = LogisticRegression(
        epsilon=claimed,
        data_norm=norm * (1 + 1e-12),
        fit_intercept=as_is,
        tol=1e-8,
        max_iter=10_000,
        random_state=job["seed"],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(train, y)
    proved = diffprivlib_logistic(claimed, norm, intercept=as_is)
    said = {"claimed": claimed, "proved": proved if np.isfinite(proved) else None}
    scores = {
        name: model.decision_function(X)
        for name, X in (("train_scores", train), ("test_scores", test))
    }
    law = np.stack([scores["test_scores"] <= 0, scores["test_scores"] > 0], axis=1).astype(float)
    np.savez(job["out"], **scores, said=json.dumps(said), **({} if job["after"] else {"law": law}))


if __name__ == "__main__":
    main()
