"""The systems of the field: which program fits each, where, and what is protected."""

from __future__ import annotations

from dataclasses import dataclass

OURS = "this library"
NOTHING = "nothing"


@dataclass(frozen=True)
class System:
    """One system. `fit`: a method of `hard/methods.py`, or a program of `rivals/theirs`, in the
    Python that `python` names.

    `after`: what makes the base's scores fair; the base then has half of epsilon and of delta,
    "ours" the other half. `protects` and `relation`: of the finished model, as proved. `claims`:
    its library states an epsilon. `checked`: here.
    """

    name: str
    words: str
    fit: str
    python: str = OURS
    after: str = ""
    protects: str = "records"
    relation: str = "add-remove"
    reads_group: bool = False
    claims: bool = True
    checked: bool = True
    parity_only: bool = False
    two_groups: bool = False
    many_classes: bool = False
    strength: float | None = None

    @property
    def is_ours(self) -> bool:
        """Whether this library alone fits it."""
        return self.python == OURS and not self.after and self.claims


_NOT = {"protects": NOTHING, "relation": "-", "claims": False}
_LISTED = (
    System("unconstrained", "this library, nothing required", "unconstrained", many_classes=True),
    System("descent", "`RateConstrainedClassifier`", "descent", many_classes=True),
    System("additive", "the same, additive model", "additive", many_classes=True),
    System("game", "`OracleGameClassifier`", "game", many_classes=True),
    System("group", "`GroupObjectiveClassifier`", "group", many_classes=True),
    System("fermi", "`FermiClassifier`, strength 10", "fermi", strength=10.0, many_classes=True),
    System("post", "`OddsPostProcessor`", "post", reads_group=True, many_classes=True),
    System(
        "parity",
        "`ParityPostProcessor`",
        "parity",
        reads_group=True,
        parity_only=True,
        many_classes=True,
    ),
    System(
        "once",
        "`release_groups`, then models",
        "once",
        protects="sensitive_features",
        many_classes=True,
    ),
    System("fairlearn", "fairlearn `ExponentiatedGradient`", "fairlearn", **_NOT),  # type: ignore[arg-type]
    System(
        "fairlearn-threshold",
        "fairlearn `ThresholdOptimizer`",
        "fairlearn-threshold",
        reads_group=True,
        **_NOT,
    ),  # type: ignore[arg-type]
    System(
        "aif-reweighing",
        "AIF360 `Reweighing`",
        "aif_fit.py",
        "aif360",
        parity_only=True,
        two_groups=True,
        **_NOT,
    ),  # type: ignore[arg-type]
    System(
        "diffprivlib",
        "diffprivlib, no fairness",
        "diffprivlib_fit.py",
        "diffprivlib",
        relation="replace-one",
    ),
    System(
        "diffprivlib-as-is",
        "the same, as its page has it",
        "diffprivlib_fit.py",
        "diffprivlib",
        relation="replace-one",
    ),
    System(
        "diffprivlib-ours",
        "diffprivlib, then `OddsPostProcessor`",
        "diffprivlib_fit.py",
        "diffprivlib",
        after="ours",
        relation="replace-one",
        reads_group=True,
    ),
    System(
        "diffprivlib-threshold",
        "diffprivlib, then `ThresholdOptimizer`",
        "diffprivlib_fit.py",
        "diffprivlib",
        after="threshold",
        protects=NOTHING,
        relation="-",
        reads_group=True,
    ),
    System(
        "opacus-ours",
        "opacus, then `OddsPostProcessor`",
        "opacus_fit.py",
        after="ours",
        reads_group=True,
    ),
    System(
        "ebm-ours",
        "DP-EBM, then `OddsPostProcessor`",
        "ebm_fit.py",
        "ebm",
        after="ours",
        reads_group=True,
        checked=False,
    ),
    System("aim", "AIM, then fairlearn's reduction", "aim", "aim", checked=False),
)
SYSTEMS = {system.name: system for system in _LISTED}
"""Every system by its name."""
