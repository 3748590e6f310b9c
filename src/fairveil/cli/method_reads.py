"""Which options each method of `fairveil fit` reads, of those that not all methods read."""

from __future__ import annotations

BOUNDED = ("constraint", "confidence", "certify_share", "if_refused")
CERTIFIES = ("certify", "confidence", "certify_share", "if_refused")

READS = {
    "rate-constrained": (*BOUNDED, "randomised"),
    "post-processing": (*BOUNDED, "randomised", "predict_method", "group_aware"),
    "parity-post-processing": ("constraint", "randomised"),
    "game": BOUNDED,
    "group-objective": (*BOUNDED, "objective", "search", "decisions"),
    "fermi": (*CERTIFIES, "notion", "strength"),
    "tailored": (
        *(*CERTIFIES, "objective", "allocation", "spend", "group_loss_bound"),
        *("min_epsilon", "max_epsilon", "groups"),
    ),
}


def unread(method: str | None) -> frozenset[str]:
    """Names of options that others read and this method does not; none of an unknown method."""
    if method not in READS:
        return frozenset()
    return frozenset(option for reads in READS.values() for option in reads) - {*READS[method]}
