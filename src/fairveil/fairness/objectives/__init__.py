"""Objectives and constraints on the vector of group losses (Alabi): what is minimized, and what
must stay small.

Each is a public description; `at(frame)` makes the function, with the shares of cells and labels
that were released. The same objects serve as objective and, by `at_most(bound)`, as constraint.
Notions of fairness and their names are constraints, too.

>>> import numpy as np
>>> from fairveil.facts import Cells
>>> frame = Frame(Cells((("f", "m"),)), ("no", "yes"), np.full((2, 2), 0.25))
>>> everyone_yes = np.zeros(frame.shape)
>>> everyone_yes[:, :, 1] = 0.25
>>> [
...     round(float(objective.at(frame).value(everyone_yes)), 3)
...     for objective in (Error(), GMean(), Gap("equalized_odds"))
... ]
[0.5, 0.91, 0.0]
>>> print(parse_constraint(["gini:0.2", GMean().at_least(0.7)]))
gini <= 0.2, 1 - gmean <= 0.3
"""

from __future__ import annotations

from .constraint import Constraint
from .custom import Custom
from .names import from_dict, parse_constraint, parse_objective
from .objective import KINDS as KINDS
from .objective import Bound, Frame, Objective
from .of_errors import Error, FalseNegatives, FalsePositives, GMean, HMean, RateOf, WeightedError
from .of_gaps import GAPS as GAPS
from .of_gaps import Gap, SmoothedOdds, SmoothedOddsOfPairs, SmoothedOddsOfRates
from .of_groups import Gini, GroupLoss, LargestGroupLoss, MeanGroupLoss, SumOfErrorRates

__all__ = [
    "Bound",
    "Constraint",
    "Custom",
    "Error",
    "FalseNegatives",
    "FalsePositives",
    "Frame",
    "GMean",
    "Gap",
    "Gini",
    "GroupLoss",
    "HMean",
    "LargestGroupLoss",
    "MeanGroupLoss",
    "Objective",
    "RateOf",
    "SmoothedOdds",
    "SmoothedOddsOfPairs",
    "SmoothedOddsOfRates",
    "SumOfErrorRates",
    "WeightedError",
    "from_dict",
    "parse_constraint",
    "parse_objective",
]
