"""What the options of `fairveil fit` say to a method's estimator, and what was asked, in words."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from .. import _checks
from ..errors import InputError
from ..estimators.certifying.certified_refusals import CONFIDENCE
from ..estimators.certifying.certifying import notions_of as certifiable
from ..estimators.choosing.group_choices import NAMED
from ..estimators.fitting.promises import notions_of
from ..estimators.group_objective import METHODS as SEARCHES
from ..estimators.settings.grouped import MODES, OBJECTIVES
from ..estimators.settings.keeping import IF_REFUSED, SHARE, SetAside
from ..estimators.wrapped.answers import METHODS as ANSWERS
from ..fairness import DemographicParity, Notion
from ..fairness.notions import parse
from ..fairness.objectives import Bound, Objective, parse_constraint, parse_objective
from ..learning.allocation import ALLOCATIONS, SPENDS
from ..learning.lagrangian.fermi import NOTIONS
from .by_group import numbers


@dataclass(frozen=True)
class FitOptions:
    """The options that say what is asked of a model; each method reads some."""

    constraint: list[str] | None = None
    notion: str | None = None
    strength: float | None = None
    objective: str | None = None
    search: str | None = None
    decisions: str | None = None
    allocation: list[str] | None = None
    spend: str | None = None
    group_loss_bound: list[str] | None = None
    min_epsilon: list[str] | None = None
    max_epsilon: list[str] | None = None
    groups: str | None = None
    randomised: bool | None = None
    predict_method: str | None = None
    group_aware: bool | None = None
    confidence: float | None = None
    certify_share: float | None = None
    if_refused: str | None = None
    certify: list[str] | None = None


@dataclass(frozen=True)
class FitRequest:
    """What was asked: notions and bounds for the page, what is minimized where that is no loss of
    the method's own, and arguments of the estimator; `by_group`: those that are numbers by the
    names of groups (`by_group.resolved`)."""

    notions: tuple[Notion, ...]
    arguments: dict[str, Any]
    bounds: tuple[Bound, ...] = ()
    objective: Objective | None = None
    by_group: dict[str, dict[str, float]] = field(default_factory=dict)


def bounded(wishes: FitOptions) -> FitRequest:
    """Of a method that keeps the bounds of notions."""
    notions = notions_of(wishes.constraint)
    for option, got in _checks.named(wishes, ("certify_share", "if_refused")).items():
        if got is not None and wishes.confidence is None:
            remedy = "Say --confidence 0.95, for example, or leave it out."
            raise InputError.expected(
                "--confidence beside it", of=dashed(option), got=got, remedy=remedy
            )
    if wishes.confidence is None:
        return FitRequest(tuple(notions), {"constraints": notions or None})
    if not notions:
        remedy = "Say --constraint demographic_parity:5%, say: what is to be certified."
        raise InputError.expected(
            "a --constraint on rates of decisions",
            of="--confidence",
            got="none",
            remedy=remedy,
            quote=False,
        )
    listed: list[Any] = list(notions)
    certified = [replace(notion, confidence=wishes.confidence) for notion in listed]
    return FitRequest(tuple(notions), {"constraints": certified, "certify_share": _aside(wishes)})


def _aside(wishes: FitOptions) -> Any:
    """What is set aside to certify, and what becomes of a model that is refused."""
    if wishes.if_refused is None:
        return wishes.certify_share
    refused = _checks.one_of(IF_REFUSED, if_refused=wishes.if_refused)
    return SetAside(
        share=SHARE if wishes.certify_share is None else wishes.certify_share, if_refused=refused
    )


def _certified(wishes: FitOptions) -> dict[str, Any]:
    """Of one that keeps no bound on rates: what is certified of its model."""
    if not wishes.certify:
        asked = _checks.named(wishes, ("confidence", "certify_share", "if_refused"))
        for option, got in asked.items():
            if got is not None:
                remedy = "Say --certify demographic_parity:10%, say: what is to be certified."
                raise InputError.expected(
                    "--certify beside it", of=dashed(option), got=got, remedy=remedy
                )
        return {}
    listed: list[Any] = certifiable(wishes.certify, of="certify")
    confidence = CONFIDENCE if wishes.confidence is None else wishes.confidence
    certified = [replace(notion, confidence=confidence) for notion in listed]
    return {"certify": certified, "certify_share": _aside(wishes)}


def may_be_mixed(wishes: FitOptions) -> FitRequest:
    """Of one that keeps bounds, and may publish a mixture of its model and others."""
    asked = bounded(wishes)
    return replace(
        asked, arguments=asked.arguments | {"randomised": wishes.randomised is not False}
    )


def after_a_base(wishes: FitOptions) -> FitRequest:
    """Of one that changes what a base answers."""
    asked = may_be_mixed(wishes)
    arguments: dict[str, Any] = {"group_aware": wishes.group_aware is not False}
    if wishes.predict_method is not None:
        if wishes.predict_method not in ANSWERS:
            remedy = "Say --predict-method predict for its decisions alone, or leave it out."
            expected = f"one of {', '.join(ANSWERS)}"
            raise InputError.expected(
                expected, of="--predict-method", got=wishes.predict_method, remedy=remedy
            )
        arguments["predict_method"] = wishes.predict_method
    return replace(asked, arguments=asked.arguments | arguments)


def by_offsets(wishes: FitOptions) -> FitRequest:
    """Of one that moves probabilities by group, for demographic parity of all classes."""
    notions = notions_of(wishes.constraint)
    max_gap = (
        notions[0].max_gap
        if len(notions) == 1 and isinstance(notions[0], DemographicParity)
        else None
    )
    if max_gap is None or notions != [DemographicParity(max_gap)]:
        remedy = (
            "Say --constraint demographic_parity:5%, or --method post-processing, which keeps "
            "others."
        )
        got = ", ".join(wishes.constraint or []) or "none"
        raise InputError.expected(
            "demographic_parity and a bound", of="--constraint", got=got, remedy=remedy
        )
    arguments = {"max_gap": max_gap, "randomised": wishes.randomised is not False}
    return FitRequest(tuple(notions), arguments)


def group_objective(wishes: FitOptions) -> FitRequest:
    """Of one that makes a function of group losses small, with bounds on others."""
    objective, constraint = (
        parse_objective(wishes.objective or "error"),
        parse_constraint(wishes.constraint).of_decisions(),
    )
    for option, got, words in (
        ("search", wishes.search, SEARCHES),
        ("decisions", wishes.decisions, NAMED),
    ):
        if got is not None and got not in words:
            remedy = f"Say --{option} {words[0]}, or leave it out."
            raise InputError.expected(" or ".join(words), of=f"--{option}", got=got, remedy=remedy)
    arguments: dict[str, Any] = {
        "objective": wishes.objective or "error",
        "constraint": wishes.constraint or None,
        "method": wishes.search or "linear-oracle",
        "decisions": wishes.decisions,
    }
    if wishes.confidence is None:
        return FitRequest(constraint.notions, arguments, constraint.bounds, objective)
    notions: Any = list(constraint.notions) or None
    certified = bounded(replace(wishes, constraint=notions)).arguments
    beside = {name: value for name, value in certified.items() if name != "constraints"}
    arguments["constraint"] = [*constraint.bounds, *certified["constraints"]]
    return FitRequest(constraint.notions, arguments | beside, constraint.bounds, objective)


def penalised(wishes: FitOptions) -> FitRequest:
    """Of a method that makes gaps expensive and bounds none."""
    if wishes.constraint:
        remedy = (
            "Say --notion demographic_parity --strength 5, for example, or --method "
            "rate-constrained, which keeps bounds."
        )
        raise InputError.expected(
            "no bound: it penalizes gaps", of="--constraint", got=wishes.constraint, remedy=remedy
        )
    notion = wishes.notion
    name, comma, options = (NOTIONS[0] if notion is None else notion).partition(",")
    name = name.strip().replace("-", "_")
    if name not in NOTIONS:
        remedy = f"Say --notion {NOTIONS[0]}, for example, without a bound."
        raise InputError.expected(
            f"one of {', '.join(NOTIONS)}", of="--notion", got=notion, remedy=remedy
        )
    if "max_gap" in options:
        raise InputError.expected(
            "no bound", of="--notion", got=notion, remedy="Say --strength 5, for example."
        )
    found: Any = replace(parse(f"{name}:0{comma}{options}"), max_gap=None)  # type: ignore[type-var]
    if found.compare != "pairs":
        remedy = "Leave it out: the penalty looks at all groups together."
        raise InputError.expected("no compare=", of="--notion", got=notion, remedy=remedy)
    wanted = _checks.non_negative(strength=1.0 if wishes.strength is None else wishes.strength)
    given = {"notion": name if not options else found, "strength": wanted}
    return FitRequest((found,), given | _certified(wishes))


def tailored(wishes: FitOptions) -> FitRequest:
    """Of one that shares a budget among groups."""
    if wishes.constraint:
        remedy = (
            "Say --group-loss-bound 0.5, for example, or --method rate-constrained, which keeps "
            "bounds on rates."
        )
        raise InputError.expected(
            "no bound on rates", of="--constraint", got=wishes.constraint, remedy=remedy
        )
    said = _checks.named(wishes, _USUAL)
    for option, words in _USUAL.items():
        if (word := said[option]) is not None and word not in words:
            remedy = f"Say {dashed(option)} {words[0]}, or leave it out."
            raise InputError.expected(
                " or ".join(words), of=dashed(option), got=word, remedy=remedy
            )
    asked: dict[str, Any] = {name: said[name] or words[0] for name, words in _USUAL.items()}
    shares = wishes.allocation or [ALLOCATIONS[0]]
    if len(shares) > 1 or shares[0] not in ALLOCATIONS:
        if any(":" not in text for text in shares):
            remedy = f"Say --allocation {ALLOCATIONS[0]}, or --allocation f:3 --allocation m:1."
            expected = f"{', '.join(ALLOCATIONS)}, or GROUP:SHARE"
            raise InputError.expected(
                expected, of="--allocation", got=", ".join(shares), remedy=remedy
            )
        asked["allocation"] = numbers("--allocation", shares)
    else:
        asked["allocation"] = shares[0]
    bounds = _checks.named(wishes, ("group_loss_bound", "min_epsilon", "max_epsilon"))
    asked |= {name: numbers(dashed(name), value) for name, value in bounds.items()}
    by_group = {name: value for name, value in asked.items() if isinstance(value, dict)}
    return FitRequest((), asked | _certified(wishes), by_group=by_group)


def dashed(option: str) -> str:
    return f"--{option.replace('_', '-')}"


_USUAL = {"objective": OBJECTIVES, "spend": SPENDS, "groups": MODES}
