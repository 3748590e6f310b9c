"""The methods of `fairveil fit --method`: an estimator each, and what a page says of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from .. import _checks
from ..errors import InputError, complaint
from ..estimators import (
    Additive,
    FermiClassifier,
    GroupObjectiveClassifier,
    OddsPostProcessor,
    OracleGameClassifier,
    ParityPostProcessor,
    RateConstrainedClassifier,
    TailoredClassifier,
)
from ..estimators.certifying.certified_run import CONFIDENCE
from ..estimators.certifying.certifying import notions_of as certifiable
from ..estimators.fitting.promises import notions_of
from ..estimators.group_objective import METHODS as SEARCHES
from ..estimators.group_objective import NAMED
from ..estimators.settings.face import built
from ..estimators.settings.grouped import MODES, OBJECTIVES
from ..estimators.settings.keeping import IF_REFUSED, SHARE, SetAside
from ..estimators.wrapped.answers import METHODS as ANSWERS
from ..fairness import DemographicParity, Notion
from ..fairness.notions import parse
from ..fairness.objectives import Bound, Objective, parse_constraint, parse_objective
from ..learning.allocation import ALLOCATIONS, SPENDS
from ..learning.lagrangian.fermi import NOTIONS
from ..models import MixtureModel
from .by_group import numbers
from .completing import MODELS
from .deciding import Fitted, by_chance, guarantee_of

NO_GUARANTEE = "Nothing was required that a guarantee could be about."


@dataclass(frozen=True)
class Wishes:
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
class Asked:
    """What was asked: notions and bounds for the page, what is minimized where that is no loss of
    the method's own, and arguments of the estimator; `by_group`: those that are numbers by the
    names of groups (`by_group.resolved`)."""

    notions: tuple[Notion, ...]
    arguments: dict[str, Any]
    bounds: tuple[Bound, ...] = ()
    objective: Objective | None = None
    by_group: dict[str, dict[str, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Method:
    """`name`: on a page; `subject`: what it makes, with the table's name in it; `reads`: how wishes
    become arguments; `options`: the names of those that it reads beside --constraint; `bounds`:
    whether it keeps bounds, or makes gaps expensive."""

    name: str
    subject: str
    made: Callable[..., Fitted]
    reads: Callable[[Wishes], Asked]
    options: tuple[str, ...] = ()
    bounds: bool = True

    def asked(self, wishes: Wishes) -> Asked:
        """What the options ask for; an error where one is not of this method."""
        for owner, method in METHODS.items():
            for option in method.options:
                if option not in self.options and (got := getattr(wishes, option)) is not None:
                    said = f"say --method {owner}."
                    remedy = (
                        f"Say --constraint demographic_parity:0.05, for example, or {said}"
                        if not method.bounds
                        else f"Or {said}"
                    )
                    expected = f"nothing: it is of --method {owner}"
                    raise InputError(
                        complaint(expected=expected, of=_dashed(option), got=got, remedy=remedy)
                    )
        return self.reads(wishes)

    def built(self, **options: Any) -> Any:
        """The estimator with these options, of which some are knobs of its settings."""
        return built(self.made, **options)

    def with_model(self, asked: Asked, name: str, pairs: list[str] | None) -> Asked:
        """The same of this kind of model; what post-processes has a base of it."""
        _checks.one_of(MODELS, model=name)
        if name == "linear":
            if pairs:
                remedy = "Say --model additive too, or leave it out."
                got = ", ".join(pairs)
                raise InputError(
                    complaint(
                        expected="nothing with --model linear",
                        of="--interaction",
                        got=got,
                        remedy=remedy,
                    )
                )
            return asked
        model = Additive(interactions=tuple(map(_pair, pairs or ())))
        given = (
            {"estimator": RateConstrainedClassifier(model=model)}
            if self.made in (OddsPostProcessor, ParityPostProcessor)
            else {"model": model}
        )
        return replace(asked, arguments=asked.arguments | given)


def _pair(text: str) -> tuple[str, str]:
    names = [name.strip() for name in text.split(",")]
    if len(names) != 2 or not all(names):
        remedy = "Say --interaction age,hours, for example."
        raise InputError(
            complaint(
                expected="two names with a comma between",
                of="--interaction",
                got=text,
                remedy=remedy,
            )
        )
    return names[0], names[1]


def _bounded(wishes: Wishes) -> Asked:
    """Of a method that keeps the bounds of notions."""
    notions = notions_of(wishes.constraint)
    for option in ("certify_share", "if_refused"):
        if getattr(wishes, option) is not None and wishes.confidence is None:
            remedy = "Say --confidence 0.95, for example, or leave it out."
            got: Any = getattr(wishes, option)
            raise InputError(
                complaint(
                    expected="--confidence beside it", of=_dashed(option), got=got, remedy=remedy
                )
            )
    if wishes.confidence is None:
        return Asked(tuple(notions), {"constraints": notions or None})
    if not notions:
        remedy = "Say --constraint demographic_parity:5%, say: what is to be certified."
        raise InputError(
            complaint(
                expected="a --constraint on rates of decisions",
                of="--confidence",
                got="none",
                remedy=remedy,
                quote=False,
            )
        )
    listed: list[Any] = list(notions)
    certified = [replace(notion, confidence=wishes.confidence) for notion in listed]
    return Asked(tuple(notions), {"constraints": certified, "certify_share": _aside(wishes)})


def _aside(wishes: Wishes) -> Any:
    """What is set aside to certify, and what becomes of a model that is refused."""
    if wishes.if_refused is None:
        return wishes.certify_share
    refused = _checks.one_of(IF_REFUSED, if_refused=wishes.if_refused)
    return SetAside(
        share=SHARE if wishes.certify_share is None else wishes.certify_share, if_refused=refused
    )


def _certified(wishes: Wishes) -> dict[str, Any]:
    """Of one that keeps no bound on rates: what is certified of its model."""
    if not wishes.certify:
        for option in ("confidence", "certify_share", "if_refused"):
            if (got := getattr(wishes, option)) is not None:
                remedy = "Say --certify demographic_parity:10%, say: what is to be certified."
                raise InputError(
                    complaint(
                        expected="--certify beside it", of=_dashed(option), got=got, remedy=remedy
                    )
                )
        return {}
    listed: list[Any] = certifiable(wishes.certify, of="certify")
    confidence = CONFIDENCE if wishes.confidence is None else wishes.confidence
    certified = [replace(notion, confidence=confidence) for notion in listed]
    return {"certify": certified, "certify_share": _aside(wishes)}


def _may_be_mixed(wishes: Wishes) -> Asked:
    """Of one that keeps bounds, and may publish a mixture of its model and others."""
    asked = _bounded(wishes)
    return replace(
        asked, arguments=asked.arguments | {"randomised": wishes.randomised is not False}
    )


def _after_a_base(wishes: Wishes) -> Asked:
    """Of one that changes what a base answers."""
    asked = _may_be_mixed(wishes)
    arguments: dict[str, Any] = {"group_aware": wishes.group_aware is not False}
    if wishes.predict_method is not None:
        if wishes.predict_method not in ANSWERS:
            remedy = "Say --predict-method predict for its decisions alone, or leave it out."
            expected = f"one of {', '.join(ANSWERS)}"
            raise InputError(
                complaint(
                    expected=expected,
                    of="--predict-method",
                    got=wishes.predict_method,
                    remedy=remedy,
                )
            )
        arguments["predict_method"] = wishes.predict_method
    return replace(asked, arguments=asked.arguments | arguments)


def _by_offsets(wishes: Wishes) -> Asked:
    """Of one that moves probabilities by group, for demographic parity of all classes."""
    notions = notions_of(wishes.constraint)
    max_gap = getattr(notions[0], "max_gap", None) if len(notions) == 1 else None
    if max_gap is None or notions != [DemographicParity(max_gap)]:
        remedy = (
            "Say --constraint demographic_parity:5%, or --method post-processing, which keeps "
            "others."
        )
        got = ", ".join(wishes.constraint or []) or "none"
        raise InputError(
            complaint(
                expected="demographic_parity and a bound", of="--constraint", got=got, remedy=remedy
            )
        )
    arguments = {"max_gap": max_gap, "randomised": wishes.randomised is not False}
    return Asked(tuple(notions), arguments)


def _group_objective(wishes: Wishes) -> Asked:
    """Of one that makes a function of group losses small, with bounds on others."""
    objective, constraint = (
        parse_objective(wishes.objective or "error"),
        parse_constraint(wishes.constraint).of_decisions(),
    )
    for option, words in (("search", SEARCHES), ("decisions", NAMED)):
        if (got := getattr(wishes, option)) is not None and got not in words:
            remedy = f"Say --{option} {words[0]}, or leave it out."
            raise InputError(
                complaint(expected=" or ".join(words), of=f"--{option}", got=got, remedy=remedy)
            )
    arguments: dict[str, Any] = {
        "objective": wishes.objective or "error",
        "constraint": wishes.constraint or None,
        "method": wishes.search or "linear-oracle",
        "decisions": wishes.decisions,
    }
    if wishes.search == "worst-group":
        arguments["loss"] = "log"
    if wishes.confidence is None:
        return Asked(constraint.notions, arguments, constraint.bounds, objective)
    notions: Any = list(constraint.notions) or None
    certified = _bounded(replace(wishes, constraint=notions)).arguments
    beside = {name: value for name, value in certified.items() if name != "constraints"}
    arguments["constraint"] = [*constraint.bounds, *certified["constraints"]]
    return Asked(constraint.notions, arguments | beside, constraint.bounds, objective)


def _penalised(wishes: Wishes) -> Asked:
    """Of a method that makes gaps expensive and bounds none."""
    if wishes.constraint:
        remedy = (
            "Say --notion demographic_parity --strength 5, for example, or --method "
            "rate-constrained, which keeps bounds."
        )
        got = wishes.constraint
        raise InputError(
            complaint(
                expected="no bound: it penalizes gaps", of="--constraint", got=got, remedy=remedy
            )
        )
    notion = wishes.notion
    name, comma, options = (NOTIONS[0] if notion is None else notion).partition(",")
    name = name.strip().replace("-", "_")
    if name not in NOTIONS:
        remedy = f"Say --notion {NOTIONS[0]}, for example, without a bound."
        raise InputError(
            complaint(
                expected=f"one of {', '.join(NOTIONS)}", of="--notion", got=notion, remedy=remedy
            )
        )
    if "max_gap" in options:
        raise InputError(
            complaint(
                expected="no bound",
                of="--notion",
                got=notion,
                remedy="Say --strength 5, for example.",
            )
        )
    found: Any = replace(parse(f"{name}:0{comma}{options}"), max_gap=None)  # type: ignore[type-var]
    if found.compare != "pairs":
        remedy = "Leave it out: the penalty looks at all groups together."
        raise InputError(
            complaint(expected="no compare=", of="--notion", got=notion, remedy=remedy)
        )
    wanted = _checks.non_negative(strength=1.0 if wishes.strength is None else wishes.strength)
    given = {"notion": name if not options else found, "strength": wanted}
    return Asked((found,), given | _certified(wishes))


def _tailored(wishes: Wishes) -> Asked:
    """Of one that shares a budget among groups."""
    if wishes.constraint:
        remedy = (
            "Say --group-loss-bound 0.5, for example, or --method rate-constrained, which keeps "
            "bounds on rates."
        )
        got = wishes.constraint
        raise InputError(
            complaint(expected="no bound on rates", of="--constraint", got=got, remedy=remedy)
        )
    for option, words in _USUAL.items():
        if (word := getattr(wishes, option)) is not None and word not in words:
            remedy = f"Say {_dashed(option)} {words[0]}, or leave it out."
            raise InputError(
                complaint(expected=" or ".join(words), of=_dashed(option), got=word, remedy=remedy)
            )
    asked: dict[str, Any] = {
        name: getattr(wishes, name) or words[0] for name, words in _USUAL.items()
    }
    shares = wishes.allocation or [ALLOCATIONS[0]]
    if len(shares) > 1 or shares[0] not in ALLOCATIONS:
        if any(":" not in text for text in shares):
            remedy = f"Say --allocation {ALLOCATIONS[0]}, or --allocation f:3 --allocation m:1."
            expected = f"{', '.join(ALLOCATIONS)}, or GROUP:SHARE"
            raise InputError(
                complaint(
                    expected=expected, of="--allocation", got=", ".join(shares), remedy=remedy
                )
            )
        asked["allocation"] = numbers("--allocation", shares)
    else:
        asked["allocation"] = shares[0]
    for name in ("group_loss_bound", "min_epsilon", "max_epsilon"):
        asked[name] = numbers(_dashed(name), getattr(wishes, name))
    by_group = {name: value for name, value in asked.items() if isinstance(value, dict)}
    return Asked((), asked | _certified(wishes), by_group=by_group)


def _dashed(option: str) -> str:
    return f"--{option.replace('_', '-')}"


CERTIFIES = ("certify", "confidence", "certify_share", "if_refused")
_USUAL = {"objective": OBJECTIVES, "spend": SPENDS, "groups": MODES}

METHODS = {
    "rate-constrained": Method(
        "rate-constrained private descent (RateConstrainedClassifier)",
        "A linear classifier, fitted to {source} by rate-constrained private descent.",
        RateConstrainedClassifier,
        _may_be_mixed,
        ("randomised", "confidence", "certify_share", "if_refused"),
    ),
    "post-processing": Method(
        "private post-processing (OddsPostProcessor)",
        "A linear classifier, fitted to {source}, and after it thresholds on its score. With "
        "several classes it changes "
        "decisions at random instead. Both solve a linear program over private counts.",
        OddsPostProcessor,
        _after_a_base,
        (
            "randomised",
            "predict_method",
            "group_aware",
            "confidence",
            "certify_share",
            "if_refused",
        ),
    ),
    "parity-post-processing": Method(
        "private post-processing by offsets (ParityPostProcessor)",
        "A linear classifier, fitted to {source}, and after it offsets of its probabilities by "
        "group, from private counts.",
        ParityPostProcessor,
        _by_offsets,
        ("randomised",),
    ),
    "game": Method(
        "private game of learner against auditor (OracleGameClassifier)",
        "A mixture of classifiers, the learner's plays in a private game against an auditor on "
        "{source}.",
        OracleGameClassifier,
        _bounded,
        ("confidence", "certify_share", "if_refused"),
    ),
    "group-objective": Method(
        "private optimisation of a group objective (GroupObjectiveClassifier)",
        "Decisions about {source} that make a function of group losses small, subject to bounds on "
        "others.",
        GroupObjectiveClassifier,
        _group_objective,
        ("objective", "search", "decisions", "confidence", "certify_share", "if_refused"),
    ),
    "fermi": Method(
        "private descent against a penalty on dependence (FermiClassifier)",
        "A linear classifier, fitted to {source} by private descent on its loss and a penalty: the "
        "mutual information of "
        "prediction and group.",
        FermiClassifier,
        _penalised,
        ("notion", "strength", *CERTIFIES),
        bounds=False,
    ),
    "tailored": Method(
        "private descent with a budget shared among groups (TailoredClassifier)",
        "A linear classifier, fitted to {source} by private descent, with a privacy budget that "
        "its groups share.",
        TailoredClassifier,
        _tailored,
        (
            "objective",
            "allocation",
            "spend",
            "group_loss_bound",
            "min_epsilon",
            "max_epsilon",
            "groups",
            *CERTIFIES,
        ),
    ),
}


def remarks(clf: Fitted, *, measured: bool) -> tuple[str, ...]:
    """Sentences about a fitted model for the notes of its page; `measured`: whether held-out rows
    were measured."""
    said = []
    if isinstance(clf.model_, MixtureModel) and by_chance(clf):
        said.append(
            f"The mixture has {len(clf.model_.models):,} rules; each decision is that of one of "
            f"them, drawn at random."
        )
    if isinstance(clf, FermiClassifier):
        said.append(
            f"No gap was bounded: {clf.strength:g} times the mutual information of prediction and "
            f"group was added to the loss. "
            "What came of it is what was measured; a larger --strength makes gaps smaller and "
            "errors more."
        )
    if isinstance(clf, OddsPostProcessor | OracleGameClassifier) and guarantee_of(clf) is None:
        said.append(NO_GUARANTEE)
    if by_chance(clf):
        rates = (
            "what was measured on held-out rows are expected rates, by the distribution of its "
            "decisions, not those of one draw"
        )
        said.append(
            f"This is a randomized classifier: "
            f"{rates if measured else 'fairveil predict draws from that distribution'}."
        )
    return tuple(said)
