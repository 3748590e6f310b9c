r"""
Rates of groups, before and after a constraint
==============================================

Past decisions rewarded years without a break, of which men have more. A private classifier under
demographic parity selects both groups nearly alike. Rates of the rows in our hands are exact, so no
guarantee covers them; the constraint's value was released with noise.
"""

# %%
# People who do not exist
# -----------------------
import numpy as np
from matplotlib import pyplot

import fairveil as fv

rng = np.random.default_rng(0)
sex = rng.choice(["female", "male"], size=30_000)
score = np.clip(rng.normal(50, 15, size=30_000), 0, 100)
years = np.clip(rng.normal(np.where(sex == "male", 14, 8), 4), 0, 50)  # of work without a break
hired = np.where(score + 2 * years + rng.normal(0, 8, size=30_000) > 77, "yes", "no")
people = {"score": score, "years": years, "sex": sex}
schema = fv.data.Schema(
    {
        "score": fv.data.Number(0, 100),
        "years": fv.data.Number(0, 50),
        "sex": fv.data.Category(("female", "male")),
        "hired": fv.data.Category(("no", "yes")),
    },
    target="hired",
    sensitive="sex",
    rows=30_000,
)

# %%
# Before the fit: what noise lets one enforce
# -------------------------------------------
# This needs public facts alone.
clf = fv.FairClassifier("demographic_parity:0.05", epsilon=1.0, schema=schema, random_state=0)
clf.plan().plot()

# %%
# The fit, and its constraint
# ---------------------------
# The broad line is the interval over the noise; the thin one adds the sampling error.
clf.fit(people, hired, sensitive_features="sex")
clf.constraint_report_.plot()

# %%
# Rates, before and after
# -----------------------
figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 2.8), layout="constrained", sharex=True)
fv.group_table(hired, hired, sex).plot(left)
fv.group_table(hired, clf.predict(people), sex).plot(right)
left.set_title("Past decisions")
_ = right.set_title("The model")

# %%
# The statement, as a notebook shows it
# -------------------------------------
clf.privacy_
