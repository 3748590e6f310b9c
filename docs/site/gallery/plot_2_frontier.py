r"""
Error against gap
=================

A frontier fits a model for every epsilon and bound, and prices looking at all of them together.
"""

# %%
# Twelve models of made-up people
# -------------------------------
import numpy as np

import fairveil as fv

rng = np.random.default_rng(1)
group = rng.choice(["a", "b"], size=24_000)
X = rng.normal(size=(24_000, 3)).clip(-3, 3) / 3
X[:, 0] += 0.5 * (group == "b")
y = (X.sum(axis=1) + rng.normal(0, 0.4, 24_000) > 0.25).astype(int)
train, test = slice(0, 18_000), slice(18_000, None)
found = fv.frontier(
    X[train],
    y[train],
    group[train],
    gaps=(0.3, 0.15, 0.08, 0.03),
    epsilons=(0.3, 1.0, 3.0),
    seeds=[0],
    test=(X[test], y[test], group[test]),
    estimator=fv.FairClassifier(schema=fv.Schema(rows=18000)),
)
print(found)

# %%
# Lower and further left is better
# --------------------------------
found.plot(dataset="made-up people")
