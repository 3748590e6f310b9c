"""Communities and Crime as in Kearns et al. (2018) and Jagielski et al. (2019): a community a row,
was its violent crime high?

What the papers state: 1,994 rows, the label already binary (583 positive), linear thresholds.
`Differs:` or not stated there:

- Features are the 104 numbers that the preparation does not mark as protected. The 18 that it marks
  (racial shares, incomes by race, language, country of birth, the police's make-up) would hand the
  sensitive column to a model that is to be blind to it.
- The sensitive column. The second paper needs one binary attribute and does not say which, nor
  where it was cut. Here: whether the normalised share of black residents is above 0.06, its median
  over the 1,994 communities (970 of them are), which leaves at least 108 communities in each group
  with each label. The catalogue's own cut at 0.5 ("communities-majority") leaves 44 in the smallest
  cell, 11 of them held out, where no gap below ten points can be told from none.
"""

from __future__ import annotations

from dataclasses import replace

from fairveil import data
from fairveil.facts import Boolean

PROTECTED = frozenset(
    """racepctblack racePctWhite racePctAsian racePctHisp whitePerCap blackPerCap indianPerCap AsianPerCap OtherPerCap
    HispPerCap PctSpeakEnglOnly PctNotSpeakEnglWell PctForeignBorn RacialMatchCommPol PctPolicWhite PctPolicBlack PctPolicHisp
    PctPolicAsian""".split()  # noqa: SIM905  # a list of quoted words would be harder to read
)
"""The columns that Kearns et al. mark as protected."""
CUTS = {"communities": 0.06, "communities-majority": 0.5}
SENSITIVE = "racepctblack_high"


def rows(name: str, folder: str | None) -> data.EncodedRows:
    """Coded rows: 104 numbers, the group, the label."""
    found = data.get("communities", folder)
    kept = {
        column: kind
        for column, kind in found.schema.columns.items()
        if column not in PROTECTED and (column == SENSITIVE or not isinstance(kind, Boolean))
    }
    high = found.table["racepctblack"] > CUTS[name]
    table = {**{column: found.table[column] for column in kept}, SENSITIVE: high}
    return data.encode(table, replace(found.schema, columns=kept))
