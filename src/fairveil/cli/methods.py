"""The methods of `fairveil fit --method`: an estimator each, and what a page says of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from .. import _checks
from ..errors import InputError
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
from ..estimators.settings.setting import built
from ..models import MixtureModel
from .completing import MODELS
from .deciding import Fitted, by_chance, guarantee_of
from .method_options import (
    FitOptions,
    FitRequest,
    after_a_base,
    bounded,
    by_offsets,
    dashed,
    group_objective,
    may_be_mixed,
    penalised,
    tailored,
)
from .method_reads import READS

NO_GUARANTEE = "Nothing was required that a guarantee could be about."


@dataclass(frozen=True)
class Method:
    """`name`: on a page; `subject`: what it makes, with the table's name in it; `reads`: how wishes
    become arguments; `options`: the names of those that it reads, where others do not; `bounds`:
    whether it keeps bounds, or makes gaps expensive."""

    name: str
    subject: str
    made: Callable[..., Fitted]
    reads: Callable[[FitOptions], FitRequest]
    options: tuple[str, ...] = ()
    bounds: bool = True

    def asked(self, wishes: FitOptions) -> FitRequest:
        """What the options ask for; an error where one is not of this method."""
        for owner, method in METHODS.items():
            for option, got in _checks.named(wishes, method.options).items():
                if option == "constraint":
                    continue  # who keeps no bound refuses it in words of its own
                if option not in self.options and got is not None:
                    said = f"say --method {owner}."
                    remedy = (
                        f"Say --constraint demographic_parity:0.05, for example, or {said}"
                        if not method.bounds
                        else f"Or {said}"
                    )
                    expected = f"nothing: it is of --method {owner}"
                    raise InputError.expected(expected, of=dashed(option), got=got, remedy=remedy)
        return self.reads(wishes)

    def built(self, **options: Any) -> Any:
        """The estimator with these options, of which some are knobs of its settings."""
        return built(self.made, **options)

    def with_model(self, asked: FitRequest, name: str, pairs: list[str] | None) -> FitRequest:
        """The same of this kind of model; what post-processes has a base of it."""
        _checks.one_of(MODELS, model=name)
        if name == "linear":
            if pairs:
                remedy = "Say --model additive too, or leave it out."
                got = ", ".join(pairs)
                raise InputError.expected(
                    "nothing with --model linear", of="--interaction", got=got, remedy=remedy
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
        raise InputError.expected(
            "two names with a comma between", of="--interaction", got=text, remedy=remedy
        )
    return names[0], names[1]


METHODS = {
    "rate-constrained": Method(
        "rate-constrained private descent (RateConstrainedClassifier)",
        "A linear classifier, fitted to {source} by rate-constrained private descent.",
        RateConstrainedClassifier,
        may_be_mixed,
        READS["rate-constrained"],
    ),
    "post-processing": Method(
        "private post-processing (OddsPostProcessor)",
        "A linear classifier, fitted to {source}, and after it thresholds on its score. With "
        "several classes it changes "
        "decisions at random instead. Both solve a linear program over private counts.",
        OddsPostProcessor,
        after_a_base,
        READS["post-processing"],
    ),
    "parity-post-processing": Method(
        "private post-processing by offsets (ParityPostProcessor)",
        "A linear classifier, fitted to {source}, and after it offsets of its probabilities by "
        "group, from private counts.",
        ParityPostProcessor,
        by_offsets,
        READS["parity-post-processing"],
    ),
    "game": Method(
        "private game of learner against auditor (OracleGameClassifier)",
        "A mixture of classifiers, the learner's plays in a private game against an auditor on "
        "{source}.",
        OracleGameClassifier,
        bounded,
        READS["game"],
    ),
    "group-objective": Method(
        "private optimisation of a group objective (GroupObjectiveClassifier)",
        "Decisions about {source} that make a function of group losses small, subject to bounds on "
        "others.",
        GroupObjectiveClassifier,
        group_objective,
        READS["group-objective"],
    ),
    "fermi": Method(
        "private descent against a penalty on dependence (FermiClassifier)",
        "A linear classifier, fitted to {source} by private descent on its loss and a penalty: the "
        "mutual information of "
        "prediction and group.",
        FermiClassifier,
        penalised,
        READS["fermi"],
        bounds=False,
    ),
    "tailored": Method(
        "private descent with a budget shared among groups (TailoredClassifier)",
        "A linear classifier, fitted to {source} by private descent, with a privacy budget that "
        "its groups share.",
        TailoredClassifier,
        tailored,
        READS["tailored"],
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
