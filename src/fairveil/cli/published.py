"""Published private frontiers on Adult, demographic parity: numbers published with the code of
DP-FERMI (Lowy et al. 2023).

Means over 15 seeds, test sets of a quarter of the 45,222 rows. All of these protect the sensitive
column alone, by replacing one value, at delta = 1/n^2. A gap is the difference of positive rates.
Points are (error, gap, gap_low, gap_high), or (error, gap) where no spread was published.
"""

from __future__ import annotations

from ..figures import Point, Series

SOURCE = "as published with the code of DP-FERMI (Lowy et al. 2023)"
NOTE = (
    "Published curves have attribute-level privacy, which is much less than record-level privacy, "
    "at delta = 1/n^2. They are "
    "means over 15 seeds on other splits of the full set of 45,222 rows. Numbers are scaled by "
    "means and deviations of the "
    "training rows."
)

FERMI, TRAN_A, TRAN_B = "DP-FERMI (Lowy et al. 2023)", "Tran et al. 2021a", "Tran et al. 2021b"
CURVES: tuple[tuple[str, float, tuple[tuple[float, ...], ...]], ...] = (
    (
        FERMI,
        0.5,
        (
            (0.16639, 0.19559, 0.1839, 0.20729),
            (0.16713, 0.14576, 0.13371, 0.15781),
            (0.17177, 0.10007, 0.08732, 0.11282),
            (0.17941, 0.05903, 0.04587, 0.07219),
            (0.18762, 0.02868, 0.01848, 0.03887),
        ),
    ),
    (
        FERMI,
        1.0,
        (
            (0.15845, 0.20172, 0.19391, 0.20953),
            (0.16044, 0.14174, 0.13237, 0.15111),
            (0.16628, 0.09829, 0.09191, 0.10468),
            (0.17627, 0.0455, 0.03756, 0.05344),
            (0.18692, 0.00988, 0.00589, 0.01388),
        ),
    ),
    (
        FERMI,
        3.0,
        (
            (0.15742, 0.1964, 0.19105, 0.20175),
            (0.15994, 0.13983, 0.13325, 0.14642),
            (0.1672, 0.08808, 0.08197, 0.0942),
            (0.17789, 0.04322, 0.03691, 0.04953),
            (0.18801, 0.01185, 0.00706, 0.01664),
        ),
    ),
    (
        TRAN_A,
        0.5,
        (
            (0.16639, 0.19559, 0.18359, 0.20559),
            (0.2041, 0.08508, 0.07308, 0.09508),
            (0.20595, 0.07435, 0.06235, 0.08435),
            (0.22266, 0.03448, 0.02248, 0.04448),
            (0.22963, 0.02221, 0.01021, 0.03221),
        ),
    ),
    (
        TRAN_A,
        1.0,
        (
            (0.15845, 0.20172, 0.19572, 0.20672),
            (0.18255, 0.1075, 0.1015, 0.1125),
            (0.19123, 0.10116, 0.09516, 0.10616),
            (0.2153, 0.0254, 0.0194, 0.0304),
            (0.2275, 0.02158, 0.01558, 0.02658),
            (0.23042, 0.02073, 0.01473, 0.02573),
        ),
    ),
    (
        TRAN_A,
        3.0,
        (
            (0.15742, 0.1964, 0.1944, 0.19806),
            (0.17592, 0.15473, 0.15273, 0.1564),
            (0.1795, 0.13523, 0.13323, 0.1369),
            (0.18314, 0.11607, 0.11407, 0.11774),
            (0.18745, 0.09338, 0.09138, 0.09505),
            (0.19568, 0.05953, 0.05753, 0.0612),
        ),
    ),
    (TRAN_B, 0.5, ((0.18792, 0.06711),)),
    (TRAN_B, 1.0, ((0.18255, 0.06118),)),
    (TRAN_B, 3.0, ((0.18255, 0.0393),)),
)


def adult_parity(epsilons: tuple[float, ...]) -> tuple[Series, ...]:
    """The published curves at these epsilons.

    >>> [(curve.label, curve.epsilon) for curve in adult_parity((1.0,))][0]
    ('DP-FERMI (Lowy et al. 2023)', 1.0)
    """
    return tuple(
        Series(
            label,
            epsilon,
            "sensitive_features",
            tuple(map(_point, points)),
            published=True,
            source=SOURCE,
        )
        for label, epsilon, points in CURVES
        if epsilon in epsilons
    )


def _point(numbers: tuple[float, ...]) -> Point:
    error, gap, *ends = numbers
    low, high = ends or (None, None)
    return Point(error, gap, gap_low=low, gap_high=high, seeds=15)
