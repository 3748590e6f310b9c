r"""
One budget, release by release
==============================

A ledger keeps what every release took of one privacy budget.
"""

# %%
# Three releases
# --------------
# Here they are told by their events; fits record themselves.
import fairveil as fv
from fairveil.core.events import Gaussian

ledger = fv.Ledger.create(None, "applicants", epsilon=1.0, delta=1e-6)
for purpose, multiplier in (
    ("counts for the office", 20.0),
    ("model of June", 9.0),
    ("model of July", 15.0),
):
    ledger.reserve(Gaussian(multiplier), purpose=purpose).commit()
print(ledger.balance())

# %%
# The ledger, as a notebook shows it
# ----------------------------------
ledger
