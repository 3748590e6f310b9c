"""What statements say of the people that a fit with a certificate set aside."""

from __future__ import annotations

SET_ASIDE = (
    "rows were set aside by an independent draw for each, so that the model has not seen "
    "them: a person is in one "
    "part, and fit and certificate together keep the guarantee that each of them keeps"
)
PERSONS_ASIDE = (
    "persons were set aside by an independent draw for each, with all of their rows, "
    "which the model has not seen. A "
    "person is in one part, so fit and certificate together keep the guarantee that each of them "
    "keeps"
)
BY_GROUP = (
    "the counts of the people set aside keep the strongest of the groups' guarantees: no group's "
    "people spend more than their "
    "own guarantee says"
)
PAID = (
    "the ledger holds one spend for both, that of the fit: the counts of the people set aside have "
    "Gaussian noise, and may "
    "lose no more than the fit's Gaussian releases"
)
