"""Less discriminatory alternatives: a search whose tolerance is fixed and signed first, whose
candidates are compared with a base model on people whom none of them has seen, and whose record can
be computed again.

The plan (tolerance, measure, candidates, confidence, budget) is made before a row is counted. Its
digest is the purpose of the ledger's line, so that whoever has the ledger sees that the plan came
first. All candidates are counted by one plan of releases; verdicts, intervals and what further
search could find follow from the counts (`methods.alternatives`).

What is computed again from a record: every interval, verdict and bound, the digest of the plan, the
noise and epsilon of the statement. Taken on trust: that the counts were made so, the models, that
candidates which are said to be drawn independently were, and that people are independent draws.

Guarantees (tests/estimators/test_estimators_lda.py):
1. One person changes the releases of all candidates together by at most the promise.
2. No row is counted before the plan is written, and with a key, signed.
3. A record in which any number, word or verdict was changed is refused.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ... import _checks
from ..._codec import Kind
from ..._json import Document, Node
from ..._reading import read_text
from ..._types import ColumnsLike, TableLike
from ..._verdicts import MET, NOT_MET
from ...core.errors import need
from ...core.events import NoOp, Repeated
from ...core.noise import NoiseSource
from ...data.elsewhere import Elsewhere, curator_of
from ...errors import InputError, SignatureError
from ...facts import Cells, Schema
from ...fairness.notions import positive_class
from ...methods.alternatives import (
    DIFFERENCE,
    KINDS,
    RATIO,
    SELECTION,
    TRUE_POSITIVE,
    Between,
    SearchFound,
    SearchRule,
    search,
)
from ...methods.counts import EXACT, CountNoise, noise_of, plan_counts
from ...show.charts import Axis, Row, Rows
from ...show.numbers import percent
from ...show.parts import Column, Fact, Facts, Note, Part, Shown, Table
from ...statement import signing
from ...statement.document import PrivacyStatement, write
from ...statement.form import Finding, canonical
from ...tables import keys
from .. import wrapped
from ..counted import CODEC, OWN_DECISIONS, Asked, CountedFile, CountsFile
from ..faces import as_array
from ..words import COUNTED, told
from . import seen
from .certificate import require_counts

PLAN, PLAN_VERSION = "fairveil search plan", 1
DOCUMENT = Document("search plan", "Let fv.lda write it.", largest=1 << 22)
MEASURES = {
    "adverse_impact_ratio": (SELECTION, RATIO),
    "selection_rate_gap": (SELECTION, DIFFERENCE),
    "true_positive_rate_ratio": (TRUE_POSITIVE, RATIO),
    "true_positive_rate_gap": (TRUE_POSITIVE, DIFFERENCE),
}
FOUR_FIFTHS = 0.8
ASSUMED = (
    "the people counted are independent draws from the population that this search is about",
    "no model, and no number of the plan, was chosen by looking at them",
    "what a model decides about a person depends on that person's row alone",
)
REDRAWN = "the drawn candidates come independently from one procedure, and so would further ones"


@dataclass(frozen=True, eq=False)
class Alternatives(CountedFile, Shown):
    """What a search for less discriminatory alternatives found, and its record. Made by `lda`.

    Attributes
    ----------
    plan : dict
        What was fixed first: tolerance, costs, measure, candidates, confidence, budget.
    plan_signature : dict or None
        Signature of the plan, made before people were counted.
    counts : ndarray
        Released counts by candidate, group, label, base's and candidate's decision.
    totals : ndarray or None
        Public sums of the counts over groups, where sensitive features alone are protected.
    privacy_ : PrivacyStatement
        Statement of the release.
    result : SearchFound
        Every interval and verdict.
    taken : str or None
        Alternative that was shown to be best; None: none was shown.
    verdict : str
        One sentence.

    See Also
    --------
    lda : Makes one.
    """

    FILE: ClassVar = CountsFile(
        "search record",
        2,
        (
            *("every interval and verdict", "what further search could find", "the plan's digest"),
            *("noise", "the statement's epsilon", "checksum"),
        ),
        (
            *("counts", "models", "independence of people and of drawn candidates"),
            *("the time of a signature", "what the statement takes on trust"),
        ),
    )
    PLAIN: ClassVar = ("plan", "plan_signature")

    plan: dict[str, Any]
    plan_signature: dict[str, Any] | None
    cells: Cells
    classes: tuple[Hashable, ...]
    counts: npt.NDArray[np.float64]
    noise: CountNoise
    confidence: float
    privacy_: PrivacyStatement
    model: str
    totals: npt.NDArray[np.float64] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Candidates, in order."""
        return tuple(one["name"] for one in self.plan["candidates"])

    @cached_property
    def rule(self) -> SearchRule:
        """What was asked, as numbers."""
        return rule_of(self.plan, self.cells)

    @cached_property
    def result(self) -> SearchFound:
        """All of it, from counts, noise and plan."""
        shape = (len(self.names), self.cells.count, 2, 2, 2)
        return search(self.counts.reshape(shape), self.noise, self.rule, self.totals)

    @property
    def taken(self) -> str | None:
        """The alternative that was shown to be best."""
        at = self.result.taken
        return None if at is None else self.names[at]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the plan in one spelling: the ledger's line has it in its purpose."""
        return digest_of(self.plan)

    @property
    def verdict(self) -> str:
        """Whether a less discriminatory alternative of equal use was shown."""
        sure = f"with {self.confidence:.6g} confidence"
        if self.taken is not None:
            return f"{self.taken} is a less discriminatory alternative of equal use, {sure}"
        unclear = sum(NOT_MET not in (m.equal_use, m.fairer) for m in self.result.candidates)
        if not unclear:
            return f"no candidate is a less discriminatory alternative, {sure}"
        return (
            f"no less discriminatory alternative was shown; {unclear} of {len(self.names)} "
            f"candidates cannot be told from one, {sure}"
        )

    def reasons(self, name: str) -> str:
        """Say why the candidate of that name was taken or not.

        Parameters
        ----------
        name : str
            The candidate.

        Returns
        -------
        str
            One sentence.
        """
        at = self.names.index(_checks.one_of(self.names, name=name))
        one = self.result.candidates[at]
        if at == self.result.taken:
            return "taken: the best shown, of equal use and less discriminatory"
        if one.is_alternative:
            return "an alternative too; more was shown of another"
        if one.equal_use == NOT_MET:
            return "its loss exceeds the base's by more than the tolerance"
        if one.fairer == NOT_MET:
            return "it is not less discriminatory than the base"
        unclear = ["that its loss is within the tolerance"] * (one.equal_use != MET)
        unclear += ["that it is less discriminatory"] * (one.fairer != MET)
        return f"not shown: {' and '.join(unclear)}"

    def parts(self) -> Iterator[Part]:
        """Verdict, what was fixed first, a line a candidate, rates of groups, what further search
        could find, and what is assumed."""
        result, plan, sure = self.result, self.plan, percent(self.confidence)
        yield Facts(tuple(self._head()))
        names, found_ = ("base", *self.names), (result.base, *result.candidates)
        kinds = (
            one["kind"] + ", reads the group" * one["reads_group"] for one in plan["candidates"]
        )
        ratio, rate = self.rule.compare == RATIO, self.rule.rate.replace("_", " ")
        changes = [Between(None, None, None), *(one.loss for one in result.candidates)]
        yield Table(
            (
                Column("model", names),
                Column("kind", (self.model, *kinds)),
                _column("loss above base", "points", changes),
                _column(f"{rate} ratio", "weight", [one.ratio for one in found_]),
                _column(f"{rate} gap", "points", [one.gap for one in found_]),
                Column("of equal use", ("-", *(one.equal_use for one in found_[1:]))),
                Column("less discriminatory", ("-", *(one.fairer for one in found_[1:]))),
                Column("why", ("the base", *map(self.reasons, self.names))),
            ),
            "Candidates on people whom no model has seen",
        )
        yield Note(f"All intervals of this page hold together with {sure} confidence.")
        label = plan["measure"].replace("_", " ")
        values = [one.ratio if ratio else one.gap for one in found_]
        rows = tuple(Row(name, *_ends(one)) for name, one in zip(names, values, strict=True))
        axis = Axis(label, "weight" if ratio else "percent")
        yield Rows(f"{label.capitalize()} of each model", axis, rows, confidence=self.confidence)
        at = [] if result.taken is None else [1 + result.taken]
        shown = [(names[one], found_[one]) for one in [0, *at]]
        groups = tuple(str(keys.shown(key)) for key in self.cells.keys)
        few = f"no: fewer than {100 * plan['smallest']:g} % of people"
        compared = tuple("yes" if at in result.compared else few for at in range(len(groups)))
        columns = [_column(f"{rate}, {name}", "percent", one.rates) for name, one in shown]
        columns = [Column("group", groups), *columns, Column("compared", compared)]
        yield Table(tuple(columns), "Rates of groups")
        yield Facts(tuple(self._further()), "What further search could find")
        for words in (*ASSUMED, *([REDRAWN] if self.rule.draws else [])):
            yield Note(f"Assumed: {words}.")

    def _head(self) -> Iterator[Fact]:
        plan, (wrongly, missed) = self.plan, self.plan["costs"]
        yield Fact("verdict", self.verdict)
        loss = f"loss ({wrongly:g} a false positive, {missed:g} a false negative)"
        loss = "error" if wrongly == missed == 1.0 else loss
        allowed = f"{loss} at most {100 * plan['tolerance']:.3g} points above the base's"
        yield Fact("fixed first", allowed)
        yield Fact("measure", plan["measure"].replace("_", " "))
        made, signed = self.plan_signature, "not signed"
        if made is not None:
            signed = f"signed {signing.Signature.from_json(json.dumps(made)).time}"
        yield Fact("plan", f"{self.digest}, {signed}")
        people = float(self.counts.sum()) / len(self.names)
        yield Fact("people", f"{people:,.0f}, as released")
        if self.rule.rate == SELECTION:
            shown = (self.result.base.ratio.low or 0.0) >= FOUR_FIFTHS
            words = "at least" if shown else "not shown to be at least"
            yield Fact("four fifths", f"the base's adverse impact ratio is {words} {FOUR_FIFTHS}")
        yield Fact("privacy", str(self.privacy_.promise))

    def _further(self) -> Iterator[Fact]:
        further, rule = self.result.further, self.rule

        def better(value: float) -> str:
            if rule.compare == RATIO:
                return f"a ratio above {value:.3f}"
            return f"a gap below {100 * value:.1f} points"

        words = "no other one may be of equal use"
        if further.listed in (1.0, 0.0) and rule.reference is None:
            words = "another one may be of equal use with equal rates"
        elif further.listed is not None:
            words = f"no other one of equal use has {better(further.listed)}"
        yield Fact("listed candidates", words)
        why = "labels and tolerance leave room for equal rates"
        if rule.rate != SELECTION:
            why = "features that told the labels would give equal rates"
        words = f"nothing can be ruled out without assumptions on features: {why}"
        if further.any_model is not None:
            words = (
                f"none of equal use, whatever features it reads, has {better(further.any_model)}"
            )
        yield Fact("any model", words)
        for one in (further.beyond, *further.redrawn[:1]):
            if one is not None:
                what = "" if one.value is None else f" with {better(one.value)}"
                more, p = len(rule.draws), one.at_most
                words = f"one more draw is of equal use{what} with probability at most {p:.2g}"
                again = f"any of {more} more, at most {1.0 - (1.0 - p) ** more:.2g}"
                yield Fact("drawn again", f"{words}; {again}")

    def _results(self) -> dict[str, Any]:
        said = {"taken": self.taken, "verdict": self.verdict, "plan_digest": self.digest}
        return plain(self.result) | said

    def check(self) -> list[Finding]:
        """Find every contradiction between stated values and what follows from the counts.

        Returns
        -------
        list of Finding
            Empty if there is none.
        """
        statement = self.privacy_
        out = [Finding(one.grave, f"statement: {one.sentence}") for one in statement.check()]
        (event, *others), times = statement.events or (NoOp(),), len(self.names)
        if isinstance(event, Repeated):
            times, event = event.count, event.event
        law = noise_of(event, statement.promise.neighbours)
        law = CountNoise("another", 0.0) if law is None or others else law
        same = law.kind == self.noise.kind and (law == EXACT or times == len(self.names))
        if not same or not math.isclose(law.scale, self.noise.scale, rel_tol=1e-9):
            out.append(Finding(True, "the statement has another release than these counts"))
        promised = math.inf if self.plan["epsilon"] == "inf" else self.plan["epsilon"]
        if promised != statement.promise.epsilon:
            out.append(Finding(True, "the budget of the statement is not that of the plan"))
        if self.plan_signature is not None:
            try:
                require_signed(self.plan, self.plan_signature)
            except SignatureError as error:
                out.append(Finding(True, f"the signature of the plan: {error}"))
        return out


def _check(found: dict[str, Any], node: Node) -> None:
    plan, totals = found["plan"], found["totals"]
    names = [one["name"] for one in plan["candidates"]]
    words = [*names, found["model"], *(one["kind"] for one in plan["candidates"])]
    if not all(isinstance(one, str) and one.isprintable() for one in words):
        node.refuse("words that can be printed", "others")
    require_counts(found["counts"], node["counts"])
    if plan.get("format") != PLAN or len(set(names)) < len(names) or not names:
        node.refuse("a plan", "none")
    if len(found["counts"]) != len(names) * found["cells"].count * KINDS:
        node["counts"].refuse("counts of its candidates and groups", len(found["counts"]))
    if plan["confidence"] != found["confidence"] or len(found["classes"]) != 2:
        node.refuse("the confidence of its plan, and two classes", "others")
    promise = found["privacy_"].promise
    if totals is not None and (
        totals.shape != (len(names), 2, 2, 2)
        or (promise.is_private and promise.protects != "sensitive_features")
    ):
        node["totals"].refuse("null, where labels are private", "totals")


Alternatives.CODEC = CODEC.with_kinds(Kind(Alternatives, check=_check))


def _column(name: str, unit: str, found: Sequence[Between]) -> Column:
    values, low, high = (
        tuple(getattr(one, at) for one in found) for at in ("value", "low", "high")
    )
    return Column(name, values, unit, low, high, "-")


def _ends(one: Between) -> tuple[float | None, float | None, float | None]:
    whole = None not in (one.value, one.low, one.high)
    return (one.value, one.low, one.high) if whole else (None, None, None)


def plain(found: SearchFound) -> dict[str, Any]:
    """What was found, as plain JSON values."""
    return json.loads(json.dumps(asdict(found), allow_nan=False))  # type: ignore[no-any-return]


def digest_of(plan: Mapping[str, Any]) -> str:
    """SHA-256 of a plan in one spelling."""
    return "sha256:" + hashlib.sha256(canonical(dict(plan)).encode()).hexdigest()


def rule_of(plan: Mapping[str, Any], cells: Cells) -> SearchRule:
    """The numbers of a plan."""
    rate, compare = MEASURES[plan["measure"]]
    reference = None
    if plan["reference"] is not None:
        key, known = keys.plain(plan["reference"], of="reference"), list(cells.keys)
        need(key in known, "a known group", of="reference", got=key, fix=f"Groups: {known}.")
        reference = known.index(key)
    wrongly, missed = map(float, plan["costs"])
    drawn = tuple(at for at, one in enumerate(plan["candidates"]) if one["drawn"])
    first = float(plan["tolerance"]), (wrongly, missed), rate, compare, reference
    return SearchRule(*first, float(plan["smallest"]), plan["confidence"], drawn, plan["look"])


# -- the door --------------------------------------------------------------------------------------


@told(COUNTED)
def lda(
    base: object,
    X: TableLike,
    y: ColumnsLike = None,
    *,
    sensitive_features: ColumnsLike = None,
    tolerance: float,
    candidates: Mapping[str, object],
    measure: str = "adverse_impact_ratio",
    costs: tuple[float, float] = (1.0, 1.0),
    reference: Hashable = None,
    smallest: float = 0.0,
    draws: object = (),
    look: int | None = None,
    positive: Hashable = None,
    confidence: float = 0.95,
    epsilon: float | None = None,
    delta: float = 0.0,
    protects: str = "records",
    schema: Schema | None = None,
    plan: str | Path | None = None,
    key: str | Path | None = None,
    random_state: object = None,
    ledger: object = None,
    unit: object = None,
    max_rows_per_unit: int | None = None,
) -> Alternatives:
    """Search for a less discriminatory alternative of equal use, with a record of the search.

    Every candidate is compared with the base on people whom no model has seen: its loss by an
    interval on the difference, its rates by intervals that hold together over all candidates and
    groups. See docs/lda.md.

    Parameters
    ----------
    base : fitted classifier, callable, array or None
        The model that an alternative is sought to. None: the first candidate.
    X : table or array
        Features of people whom no model has seen; None where all models are arrays.
    y : array, default=None
        Their known outcomes. None: those of the schema's target.
    tolerance : float
        By how much the loss of an alternative may exceed the base's, as a share: 0.01 is one point
        of error. It is fixed before the search.
    candidates : mapping of str to model
        Fitted classifiers, functions of the features, arrays of decisions, or pairs (scores, cut):
        scores of at least the cut are favourable.
    measure : str, default="adverse_impact_ratio"
        What an alternative must improve: ``"adverse_impact_ratio"``, ``"selection_rate_gap"``,
        ``"true_positive_rate_ratio"`` or ``"true_positive_rate_gap"``, of the worst pair of groups.
    costs : pair of float, default=(1.0, 1.0)
        Cost of a false positive and of a false negative. The loss is their mean over people; with
        ``(1, 1)`` it is the error.
    reference : group, default=None
        Group that the others are compared with. None: each group with each.
    smallest : float, default=0.0
        Groups of a smaller share of people are listed, and not compared: 0.02 is the 2 % rule.
    draws : sequence of str or bool, default=()
        Candidates that were drawn independently from one procedure, as by fits that differ in their
        seeds: what is said of further draws rests on that. True: all.
    look : int, default=None
        Number of this look at draws, where there may be any number of looks. None: the only one.
    positive : label, default=None
        Favourable class. None: the second of two.
    confidence : float, default=0.95
        Confidence with which everything that is said holds together.
    plan : path, default=None
        File of the plan, written before people are counted. One that is there must be the same.
    key : path, default=None
        Private key that signs the plan, before people are counted.
    Returns
    -------
    Alternatives
        With `verdict`, `taken`, `reasons()`, `result`, `privacy_`, `to_html()` and `write()`.

    Raises
    ------
    InputError
        If an argument or the table cannot be used.
    Overspent
        If the ledger's budget does not suffice for the cost.

    See Also
    --------
    certify : Certifies bounds on gaps of one model.
    frontier : Fits models over many bounds, which may be candidates.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> A, merit = rng.integers(2, size=20000), rng.normal(size=20000)
    >>> hired = merit + rng.normal(size=20000) > 0
    >>> found = lda(
    ...     merit + 0.5 * A > 0.25,
    ...     None,
    ...     hired,
    ...     sensitive_features=A,
    ...     tolerance=0.01,
    ...     candidates={"without group": merit > 0},
    ...     epsilon=1.0,
    ...     random_state=0,
    ... )
    >>> found.taken
    'without group'
    """
    who = confidence, schema, random_state, ledger, unit, max_rows_per_unit
    asked = Asked.of(epsilon, delta, protects, *who)
    models, schema = _models(base, candidates), Schema.of(schema).declared
    here = not isinstance(X, Elsewhere) and not (y is None and schema is None)
    got, fix = "no labels" if y is None else "another's rows", "Pass y; see docs/lda.md."
    need(here, "people and outcomes here", of="X, y", got=got, fix=fix)
    first = tolerance, costs, measure, reference, smallest, positive
    written = _plan(models, asked, *first, draws=draws, look=look)
    chosen, signature = _fixed(written, plan, key)
    for model in models.values():
        seen.refuse(model, X)
    sensitive, stated, facts = asked.drawn(sensitive_features)
    known: tuple[Hashable, ...] = ()
    if X is None and schema is not None:  # decisions made elsewhere: groups and classes are stated
        stated, known = stated or schema.cells(), tuple(schema.classes or ())
        schema = None
    people = asked.people(models["base"], X, y, sensitive, stated, known, schema=schema)
    cells, classes = people.cells, people.classes
    got = f"{cells.count} groups and {len(classes)} classes"
    fix, right = "Pass sensitive_features=...; more classes are not searched.", cells.count >= 2
    right = right and len(classes) == 2
    need(right, "two or more groups and two classes", of="people", got=got, fix=fix)
    favoured = classes.index(positive_class(positive, classes))
    rule_of(chosen, cells)
    label, before = people.labels == favoured, people.decisions == favoured
    kinds, reads_group = [], people.by_group
    for model in [*models.values()][1:]:
        made = _made(model, classes, favoured)
        one = asked.people(made, X, y, sensitive, cells, classes, schema=schema)
        reads_group |= one.by_group
        kinds.append(4 * label + 2 * before + (one.decisions == favoured))
    asked.warn(people)
    releases, counts = plan_counts(asked.promise, times=len(kinds)), []
    with curator_of(
        people.rows,
        asked.promise,
        plan=releases.together if asked.promise.is_private else None,
        noise=NoiseSource.of(wrapped.derived_seed(asked.seed, 2)),
        facts=[*people.facts, *facts],
        ledger=ledger,
        purpose=f"search for alternatives, plan {digest_of(chosen)}",
    ) as curator:
        for codes in kinds:
            attached = curator.attach_codes(
                people.codes_by(lambda ids, *_, codes=codes: ids * KINDS + codes),
                cells.count * KINDS,
                columns_read={"features", "label", "sensitive"},
                title="group, label, base's and candidate's decision of each person",
            )
            words = "people by group, label, base's and candidate's decision"
            counts.append(releases.release(curator, attached, words).raw[0])
        curator.finish()
    told = [*people.not_covered, OWN_DECISIONS, *asked.beside]
    statement = PrivacyStatement.of_run(curator, not_covered=told)
    totals = None
    if not reads_group and releases.totals_are_public:
        every = [np.bincount(one, minlength=KINDS).reshape(2, 2, 2) for one in kinds]
        totals = np.stack(every).astype(float)
    given = chosen, signature, cells, classes, np.concatenate(counts), releases.noise
    return Alternatives(*given, asked.confidence, statement, people.model, totals)


def _models(base: object, candidates: Mapping[str, object]) -> dict[str, object]:
    """The base first, then the candidates."""
    known = isinstance(candidates, Mapping)
    named = {str(name): model for name, model in candidates.items()} if known else {}
    wrong = [name for name in named if not name.isprintable() or name in ("", "base")]
    if base is None and named:
        base = named.pop(next(iter(named)))
    fix = "Pass candidates={'without income': model}; without a base, two or more."
    expected, got = "models by name, none called 'base'", wrong or type(candidates).__name__
    need(named and not wrong, expected, of="candidates", got=got, fix=fix)
    return {"base": base} | named


def _made(model: object, classes: tuple[Hashable, ...], favoured: int) -> object:
    """A candidate as something that decides."""
    if isinstance(model, tuple):
        scores = np.asarray(model[0], np.float64)
        right = len(model) == 2 and scores.ndim == 1 and bool(np.isfinite(scores).all())
        fix = "Pass (scores, cut): one finite number a person, and one number."
        need(right, "scores", of="candidates", got=scores.shape, fix=fix)
        return as_array(classes)[np.where(scores >= float(model[1]), favoured, 1 - favoured)]
    return model


def _kind(model: object) -> str:
    """What it is, in a word."""
    if isinstance(model, tuple):
        return f"scores cut at {float(model[-1]):g}"
    if isinstance(model, wrapped.Made):
        return model.name
    if hasattr(model, "predict"):
        return type(model).__name__
    return "function" if callable(model) else "decisions"


def _plan(
    models: Mapping[str, object],
    asked: Asked,
    tolerance: float,
    costs: Any,
    measure: str,
    reference: Hashable,
    smallest: float,
    positive: Hashable,
    *,
    draws: Any,
    look: int | None,
) -> dict[str, Any]:
    """All that is fixed first, checked, as plain JSON values."""
    names, promise = [*models][1:], asked.promise
    drawn = {True: {*names}, False: set[str]()}.get(draws) if isinstance(draws, bool) else None
    drawn = ({draws} if isinstance(draws, str) else {*draws}) if drawn is None else drawn
    unknown, fix = sorted(drawn - {*names}), f"Candidates: {', '.join(names)}."
    need(not unknown, "names of candidates", of="draws", got=unknown, fix=fix)
    two, fix = isinstance(costs, Sequence) and len(costs) == 2, "Pass costs=(1, 5), for example:"
    fix = f"{fix} of a false positive and a false negative."
    need(two, "two numbers above 0", of="costs", got=costs, fix=fix)

    def described(name: str) -> dict[str, Any]:
        by_group = wrapped._cells_read(models[name]) is not None
        kind = _kind(models[name])
        return {"name": name, "kind": kind, "reads_group": by_group, "drawn": name in drawn}

    return {
        "format": PLAN,
        "version": PLAN_VERSION,
        "tolerance": float(_checks.fraction(tolerance=tolerance)),
        "costs": [float(_checks.positive(costs=one)) for one in costs],
        "measure": _checks.one_of(tuple(MEASURES), measure=measure),
        "reference": None if reference is None else keys.to_json(reference, of="reference"),
        "smallest": float(_checks.fraction(smallest=smallest, high_open=True)),
        "positive": None if positive is None else keys.to_json(positive, of="positive"),
        "confidence": asked.confidence,
        "look": None if look is None else _checks.whole(at_least=1, look=look),
        "base": _kind(models["base"]),
        "candidates": [described(name) for name in names],
        "epsilon": "inf" if promise.epsilon == math.inf else float(promise.epsilon),
        "delta": float(promise.delta),
        "protects": promise.protects,
    }


def _fixed(
    plan: dict[str, Any], path: str | Path | None, key: str | Path | None
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The plan and its signature, both written before anything is counted. One that is there is
    taken, with its signature."""
    private = None if key is None else signing.private_key(key)
    place, signature = None if path is None else Path(path), None
    if place is not None and place.exists():
        known, beside = DOCUMENT.json(_text(place)), signing.signature_path(place)
        right = isinstance(known, dict) and set(known) == set(plan)
        changed = [one for one in plan if right and known[one] != plan[one]]
        got = f"another {', '.join(changed)}" if right else "another document"
        fix = "Search as the plan says, or write another plan to another file."
        need(right and not changed, "the plan in that file", of="plan", got=got, fix=fix)
        plan = known
        if beside.exists():
            signature = DOCUMENT.json(_text(beside))
            require_signed(plan, signature, private)
    elif place is not None:
        write(place, json.dumps(plan, indent=2) + "\n")
    if signature is None and private is not None:
        made = signing.signed_text(json.dumps(plan), private).to_json()
        signature = json.loads(made)
        if place is not None:
            write(signing.signature_path(place), made)
    return plan, signature


def _text(path: Path) -> str:
    return read_text(path, what="a plan", most=1 << 22, remedy="Pass its file.", error=InputError)


def require_signed(plan: Mapping[str, Any], signature: object, private: Any = None) -> None:
    """An error unless the signature is of this plan, and made with the key where one is given."""
    made, text = signing.Signature.from_json(json.dumps(signature)), json.dumps(plan)
    if private is not None:
        signing.verify_text(text, made, private.public_key(), "plan")
    elif made.statement != digest_of(plan):
        raise SignatureError("plan: expected the signed plan, got another")
