"""What a report is made of. Plain public values: whatever is handed in here is printed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .. import _checks
from ..figures import CurvesFigure, FrontierFigure, GapFigure, RatesFigure
from ..figures.checked import finite, finite_if_given, line, sentences, several
from ..figures.contents import UNITS, Unit
from ..metrics import GroupTable
from ..privacy.ledger.balance import Account, Balance
from ..privacy.ledger.terms import Terms
from ..privacy.statement.checks import Finding
from ..privacy.statement.statement import PrivacyStatement
from .audits import AuditSection
from .certificates import CertificateSection


@dataclass(frozen=True)
class GroupSection:
    """A group table and whose it is: `of`, in the plural and without a number. `exact`: it was
    computed from their rows without noise, so the page lists it as not covered. `expected`: its
    rates are expected ones of a model that is randomized, not those of one draw."""

    table: GroupTable
    of: str = "held-out people"
    exact: bool = True
    expected: bool = False

    def __post_init__(self) -> None:
        several(GroupTable, "table", (self.table,))
        line(of=self.of)


@dataclass(frozen=True)
class Coefficient:
    """One weight of a linear model, `unit` such as "per year" or "against all others"."""

    name: str
    weight: float
    unit: str = ""

    def __post_init__(self) -> None:
        line(name=self.name)
        line(empty=True, unit=self.unit)
        _checks.normalise(self, weight=finite("weight", self.weight))


@dataclass(frozen=True)
class CertainLine:
    """One bound: what it is `at_most` (None: not known, for the reason `missing`), and the
    `released` value, if any. `unit`: how a page shows them, "points", "percent" or "plain"."""

    name: str
    at_most: float | None
    released: float | None = None
    missing: str = "not known"
    unit: Unit = "plain"

    def __post_init__(self) -> None:
        line(name=self.name)
        line(missing=self.missing)
        _checks.one_of(UNITS, unit=self.unit)
        finite_if_given(self, "at_most", "released")


@dataclass(frozen=True)
class Certainty:
    """What theory says of one fit: a sentence, its bounds, what they are conditional on, and every
    number of it as plain JSON values. `report.certain` makes it from an estimator's
    `guarantee_`."""

    sentence: str
    confidence: float
    lines: tuple[CertainLine, ...]
    conditions: tuple[str, ...] = ()
    numbers: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        line(sentence=self.sentence)
        _checks.normalise(self, confidence=finite("confidence", self.confidence))
        _checks.normalise(self, lines=several(CertainLine, "lines", self.lines))
        _checks.normalise(self, conditions=sentences("conditions", self.conditions))


@dataclass(frozen=True)
class GroupPayment:
    """What one group was given of a budget and what its people spend: `share` of the last stage,
    `epsilon` of the whole fit. `standard_error`, `count`: as released, None where they were not."""

    group: str
    share: float
    epsilon: float
    standard_error: float | None = None
    count: float | None = None

    def __post_init__(self) -> None:
        line(group=self.group)
        _checks.normalise(self, share=finite("share", self.share))
        _checks.normalise(self, epsilon=_checks.non_negative(epsilon=self.epsilon, allow_inf=True))
        finite_if_given(self, "standard_error", "count")


@dataclass(frozen=True)
class Payments:
    """How a budget was shared among groups: by which `rule`, in words, a line for each group, and
    what their epsilons mean. `report.payments` makes it from an estimator's `tailoring_`."""

    rule: str
    lines: tuple[GroupPayment, ...]
    conditions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        line(rule=self.rule)
        _checks.normalise(self, lines=several(GroupPayment, "lines", self.lines))
        _checks.normalise(self, conditions=sentences("conditions", self.conditions))


@dataclass(frozen=True)
class Baseline:
    """What the model is held against in training: its `error`, and the model's error minus that
    (`difference`), with the standard deviation of its `noise`; None: not known. `verdict`:
    "better", "worse" or "cannot be told"; `worse`: whether the fit warns; `fair`: whether it keeps
    the constraints as well as the model does."""

    name: str
    remark: str
    error: float | None
    difference: float | None
    noise: float | None
    verdict: str
    worse: bool = False
    fair: bool = True

    def __post_init__(self) -> None:
        line(name=self.name, verdict=self.verdict)
        line(empty=True, remark=self.remark)
        finite_if_given(self, "error", "difference", "noise")


@dataclass(frozen=True)
class Baselines:
    """The model's own training `error`, through noise, and what it is held against; None: not
    known.

    `unit`: "error" (a share) or the name of another measure. `handed_out`: "model", or the name of
    what is in its place, and `remark` what that is in words. `report.baselines` makes it from
    `baselines_`.
    """

    error: float | None
    noise: float | None
    unit: str
    lines: tuple[Baseline, ...]
    handed_out: str = "model"
    remark: str = ""

    def __post_init__(self) -> None:
        line(unit=self.unit, handed_out=self.handed_out, remark=self.remark or "-")
        finite_if_given(self, "error", "noise")
        _checks.normalise(self, lines=several(Baseline, "lines", self.lines) if self.lines else ())


@dataclass(frozen=True)
class LedgerSection:
    """One ledger: where it is (`place`, without a password), its terms in numbers and words, what
    is spent, how it came to that, and what a check of it found. `report.ledger` makes it from a
    handle."""

    place: str
    terms: Terms
    terms_words: tuple[tuple[str, str], ...]
    balance: Balance
    account: Account
    findings: tuple[Finding, ...]

    def __post_init__(self) -> None:
        line(place=self.place)
        several(Terms, "terms", (self.terms,))
        several(Balance, "balance", (self.balance,))
        several(Account, "account", (self.account,))
        _checks.normalise(
            self, findings=several(Finding, "findings", self.findings) if self.findings else ()
        )


@dataclass(frozen=True)
class PrivateTableSection:
    """Rates by group with noise. `how`: what the intervals hold; `gaps`: a sentence each.
    `report.private_table` makes it."""

    how: str
    gaps: tuple[str, ...]
    rates: tuple[RatesFigure, ...]
    numbers: dict[str, Any]

    def __post_init__(self) -> None:
        line(how=self.how)
        _checks.normalise(
            self, gaps=sentences("gaps", self.gaps), rates=several(RatesFigure, "rates", self.rates)
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "how": self.how,
            "gaps": list(self.gaps),
            "names": [one.name for one in self.rates],
            **self.numbers,
        }


@dataclass(frozen=True)
class ReportContents:
    """What stands on a page. See `Report`."""

    title: str
    subject: str = ""
    verdict: str | None = None
    statement: PrivacyStatement | None = None
    all_models: PrivacyStatement | None = None
    statement_file: str | None = None
    gaps: tuple[GapFigure, ...] = ()
    tables: tuple[GroupSection, ...] = ()
    frontiers: tuple[FrontierFigure, ...] = ()
    coefficients: tuple[Coefficient, ...] = ()
    terms: tuple[CurvesFigure, ...] = ()
    not_covered: tuple[str, ...] = ()
    verify: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    created: str | None = None
    language: str = "en"
    method: str | None = None
    guarantee: Certainty | None = None
    payments: Payments | None = None
    ledger: LedgerSection | None = None
    baselines: Baselines | None = None
    warnings: tuple[str, ...] = ()
    certificate: CertificateSection | None = None
    private_table: PrivateTableSection | None = None
    audit: AuditSection | None = None

    def __post_init__(self) -> None:
        line(title=self.title)
        line(language=self.language)
        line(empty=True, subject=self.subject)
        words = _checks.named(self, ("verdict", "statement_file", "created", "method"))
        for name, text in words.items():
            if text is not None:
                line(**{name: text})
        alone: dict[str, type] = {
            "statement": PrivacyStatement,
            "all_models": PrivacyStatement,
            "guarantee": Certainty,
            "certificate": CertificateSection,
            "private_table": PrivateTableSection,
            "audit": AuditSection,
            "payments": Payments,
            "ledger": LedgerSection,
            "baselines": Baselines,
        }
        for name, one in _checks.named(self, alone).items():
            if one is not None:
                several(alone[name], name, (one,))
        kinds = {
            "gaps": GapFigure,
            "tables": GroupSection,
            "frontiers": FrontierFigure,
            "coefficients": Coefficient,
        }
        kinds["terms"] = CurvesFigure
        for name, values in _checks.named(self, kinds).items():
            kind = kinds[name]
            _checks.normalise(
                self, **{name: several(kind, name, values) if values != () and values != [] else ()}
            )
        said = _checks.named(self, ("not_covered", "verify", "notes", "warnings"))
        for name, given in said.items():
            _checks.normalise(self, **{name: sentences(name, given)})
