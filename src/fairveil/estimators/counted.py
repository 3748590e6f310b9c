"""One private count of people, and the results that follow from it: the promise that is asked for,
the count itself, and the file that carries it.

Certificates, private tables and released groups are such results; a monitor makes such counts
period by period. A file is never pickle. Its checksum shows damage, not authorship; a signature
says who stands by counts and statement together.

Guarantees (tests/estimators/test_estimators_certify.py, test_estimators_certificate_json.py,
test_estimators_released_file.py):
1. The people are counted once, by one event that costs at most the promise; everything else is
   computed from that release.
2. `from_json(to_json())` is the same result. A file in which any number, word or verdict was
   changed is refused; whatever a file holds, reading it gives its object and findings, or an error
   that says what is malformed, and never another.
3. No field of a signed file can be changed without the signature being refused; spaces and the
   order of fields can.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from .. import _checks
from .._codec import Codec, Kind, UnwrittenError
from .._json import MALFORMED, Document, Node
from .._reading import read_text
from .._types import Floats, TableLike
from ..core.errors import need
from ..core.events import NonPrivate, NoOp
from ..core.noise import NoiseSource
from ..core.promise import Promise
from ..data.elsewhere import curator_of
from ..errors import FairveilError, InputError, SignatureError
from ..facts import Cells
from ..fairness import BoundedGroupLoss, Notion, notions
from ..fairness.notions import SelectionRateRatio
from ..fairness.objectives import Bound, Constraint
from ..ledger import current, given_ledger
from ..methods.counts import CountNoise, CountPlan, noise_of
from ..models.folders import LARGEST_TEXT
from ..statement import signing
from ..statement.document import PrivacyStatement, PublicFact, write
from ..statement.form import Finding, canonical
from ..statement.signing import Signature
from . import cautions, fitting, reading, wrapped
from .coding import CODINGS
from .reading import SoftGroups, Whose
from .wrapped import DecidedPeople

ONE_ROW = "each person counts once, by one of their rows, which a coin chose whatever it holds"
DRAWN = "each drawn from that person's distribution over groups"
OWN_DECISIONS = (
    "the model, and what it decides about a person, are taken to be public: what the model itself "
    "tells of the rows that it was fitted to is in its own statement"
)

# ------------------------------ asked
# What is asked for, checked before any row is read.


@dataclass(frozen=True, eq=False, repr=False)  # it may hold whose each row is
class Asked:
    """One private count: who is protected and how, the confidence of what follows, the seed, and
    where it is recorded. `beside`: what is taken on trust of people with several rows."""

    whose: Whose | None
    promise: Promise
    confidence: float
    seed: int | None
    schema: Any
    ledger: object

    @staticmethod
    def of(
        epsilon: float | None,
        delta: float,
        protects: str,
        confidence: object,
        schema: object,
        random_state: object,
        ledger: object,
        unit: object,
        most: int | None,
    ) -> Asked:
        """All of it, checked; a ledger that would refuse is heard now."""
        whose = one_row_each(unit, most, schema, epsilon)
        promise = required_promise(epsilon, delta, protects, whose)
        sure, seed = confidence_of(confidence), fitting.seed_of(random_state)
        book = given_ledger(ledger) or current()
        if book is not None:
            book.require(promise, secure=seed is None)
        return Asked(whose, promise, sure, seed, schema, ledger)

    @property
    def beside(self) -> list[str]:
        """What is said of people with several rows."""
        return [] if self.whose is None else [ONE_ROW]

    def drawn(self, groups: Any) -> tuple[Any, Cells | None, list[PublicFact]]:
        """Groups as given; of a distribution a row one each, the cells that they state, and the
        fact."""
        if not isinstance(groups, SoftGroups):
            return groups, None, []
        source = NoiseSource.of(wrapped.derived_seed(self.seed, 4))
        facts = [PublicFact("recorded groups", DRAWN, "argument")]
        return groups.drawn(source), Cells((groups.groups,)), facts

    def people(
        self, decides: object, X: TableLike, y: Any, groups: Any, *stated: Any, schema: Any = None
    ) -> DecidedPeople:
        """The people that are to be counted; `stated`: cells and classes, where these are known."""
        given = y, groups, schema, self.promise, self.seed, self.whose
        return wrapped.people_of(decides, X, *given, *stated)

    def warn(self, people: DecidedPeople) -> None:
        """Of a promise that says little."""
        public = self.promise.rows_are_public
        cautions.of_promise(self.promise, people.rows.exact_count if public else None)

    def count(
        self, people: DecidedPeople, plan: CountPlan, codes: Any, parts: int, **options: Any
    ) -> tuple[Floats, PrivacyStatement]:
        """The one release: see `count`."""
        seed, options = wrapped.derived_seed(self.seed, 2), {"ledger": self.ledger, **options}
        return count(people, self.promise, plan, codes, parts, seed=seed, **options)


def one_row_each(
    unit: object, most: int | None, schema: object, epsilon: float | None
) -> Whose | None:
    """Who is protected: persons only where each counts once."""
    found = reading.whose(unit, most, schema)
    if found is None:
        return None
    got: Any = found.unit.max_rows if epsilon != math.inf else "all rows, without privacy"
    fix = "Rows of one person are no independent draws: pass max_rows_per_unit=1, and a finite epsilon."
    need(got == 1, "one row of each person", of="max_rows_per_unit", got=got, fix=fix)
    return found


def required_promise(
    epsilon: float | None,
    delta: float,
    protects: str,
    whose: Whose | None = None,
) -> Promise:
    """The promise; a budget must be given."""
    fix = "Pass epsilon=1.0, for example; float('inf') for people who are public or have consented."
    need(epsilon is not None, "a privacy budget", of="epsilon", got=None, fix=fix)
    stated: Any = epsilon
    return fitting.promise_of(stated, delta, protects, whose)


def confidence_of(confidence: object) -> float:
    """One half or more, and less than certain."""
    remedy = "Pass confidence=0.95, for example: no finite number of people makes anything certain."
    found = _checks.fraction(confidence=confidence, low_open=True, high_open=True, remedy=remedy)
    expected, sound = "0.5 or more, and at most 1 - 1e-9", 0.5 <= found <= 1.0 - 1e-9
    need(sound, expected, of="confidence", got=found, fix=remedy)
    return float(found)


def notions_of(
    constraints: object, *, of: str = "constraints", certified: bool = False
) -> list[Notion]:
    """Notions, or their names and bounds; "selection_rate_ratio:0.8" among them. Those that ask for
    nothing are refused. `of`: the argument; `certified`: whether they may have a confidence."""
    many = isinstance(constraints, Iterable) and not isinstance(constraints, str | Notion)
    fix = "Pass DemographicParity(0.05): bounds on other functions cannot be certified."
    are_notions = not isinstance(constraints, Bound | Constraint)
    need(are_notions, "notions of fairness", of=of, got=constraints, fix=fix)
    out: list[Notion] = []
    for one in constraints if many else [constraints]:  # type: ignore[attr-defined]
        out += (
            [_ratio(one)]
            if isinstance(one, str) and one.replace("-", "_").startswith(SelectionRateRatio.kind)
            else fitting.notions_of(one, certified=certified)
        )
    empty = [one.kind for one in out if one.is_vacuous]
    fix = "Pass DemographicParity(0.05), 'equalized_odds:0.1' or 'selection_rate_ratio:0.8', for example."
    need(out and not empty, "notions with a bound", of=of, got=empty or None, fix=fix)
    losses = [one.loss for one in out if isinstance(one, BoundedGroupLoss)]
    others = [loss for loss in losses if loss != "zero_one"]  # no rates of decisions
    got, fix = f"the {(others or [''])[0]} loss", "Certify a notion on rates of decisions."
    need(not others, "a loss of decisions", of=of, got=got, fix=fix)
    return out


def _ratio(text: str) -> SelectionRateRatio:
    _, _, bound = text.partition(":")
    try:
        ratio = float(bound.strip().removesuffix("%")) / (
            100.0 if bound.strip().endswith("%") else 1.0
        )
    except ValueError:
        remedy = "Write selection_rate_ratio:0.8, for example."
        raise InputError.expected("a ratio", of="constraint", got=text, remedy=remedy) from None
    return SelectionRateRatio(ratio)


# ------------------------------ count
# The one release.

OF_PERSON = "group, label and decision of each person"


def count(
    people: DecidedPeople,
    promise: Promise,
    plan: CountPlan,
    codes: Any,
    parts: int,
    *,
    labels: bool,
    groups: bool,
    seed: int | None,
    purpose: str,
    what: str,
    facts: Sequence[Any] = (),
    ledger: object = None,
    title: str = OF_PERSON,
    not_covered: Sequence[str] = (),
) -> tuple[Floats, PrivacyStatement]:
    """Count people by their codes (`parts` of them), and the statement of that. `labels`, `groups`:
    whether the codes read them; `what`: is released, in words."""
    with curator_of(
        people.rows,
        promise,
        plan=plan.event if promise.is_private else None,
        noise=NoiseSource.of(seed),
        facts=[*people.facts, *facts],
        ledger=ledger,
        purpose=purpose,
    ) as curator:
        read = {
            "features",
            *(["label"] if labels else ()),
            *(["sensitive"] if groups or people.by_group else ()),
        }
        attached = curator.attach_codes(codes, parts, columns_read=read, title=title)
        counts = plan.release(curator, attached, what).raw[0]
        curator.finish()
    told = [*people.not_covered, *not_covered]
    return counts, PrivacyStatement.of_run(curator, not_covered=told)


# ------------------------------ the file

NOISES = ("none", "gaussian", "discrete-laplace")
FIELDS = ("format", "version", "counted", "results", "statement", "checksum", "signature")
TOLERANCE = 1e-6
"""By how much a number that is computed again may differ: the last steps of a search on another
processor."""
GUESSES = ("people_needed",)


def _check_noise(found: dict[str, Any], node: Node) -> None:
    node["kind"].one_of(NOISES)
    if not (0.0 < found["scale"] < 1e12 or found["kind"] == "none"):
        node["scale"].refuse("a scale above 0", found["scale"])


CODEC = CODINGS.with_kinds(
    *notions.KINDS,
    Kind(CountNoise, check=_check_noise),
)


@dataclass(frozen=True)
class CountsFile:
    """One kind of file: `what` it is in words, its `version`, and what `fairveil verify` computes
    again and takes `on_trust`."""

    what: str
    version: int
    recomputed: tuple[str, ...]
    on_trust: tuple[str, ...]

    @property
    def format(self) -> str:
        """What the document says that it is."""
        return f"fairveil {self.what}"

    @property
    def document(self) -> Document:
        """How it is read."""
        remedy = "Ask its author for the file again."
        return Document(self.what, remedy, largest=LARGEST_TEXT)

    def sealed(self, **content: Any) -> dict[str, Any]:
        """A document of this content, with its checksum."""
        out = {"format": self.format, "version": self.version, **content}
        return out | {"checksum": checksum(out)}

    def opened(self, text: str, fields: Sequence[str]) -> Node:
        """The document; an error for another one."""
        node = self.document.node(text)
        shown = node.mapping()
        if shown.get("format") != self.format or shown.get("version") != self.version:
            got = shown.get("format")
            node.refuse(f"{self.format!r} of version {self.version}", got)
        return node.only(fields)


class CountedFile:
    """What follows from one release of counts, and its file. Abstract.

    `fairveil verify` recomputes the file.
    """

    FILE: ClassVar[CountsFile]
    CODEC: ClassVar[Codec]
    STATEMENT: ClassVar[str] = "privacy_"
    PLAIN: ClassVar[tuple[str, ...]] = ()
    """Fields that stand as they are beside what was counted."""
    noise: Any

    def _results(self) -> dict[str, Any]:
        """What follows from the counts, as plain JSON values."""
        return {}

    def _doubts(self) -> Iterator[str]:
        """What else contradicts itself."""
        return iter(())

    @property
    def _statement(self) -> PrivacyStatement:
        found: PrivacyStatement = getattr(self, self.STATEMENT)
        return found

    def check(self) -> list[Finding]:
        """Find every contradiction between the counts and the statement.

        Returns
        -------
        list of Finding
            Empty if there is none.
        """
        found = of_release(self._statement, self.noise)
        return [*found, *(Finding(True, one) for one in self._doubts())]

    def to_dict(self) -> dict[str, Any]:
        """Describe it as plain JSON values.

        Returns
        -------
        dict
            Plain JSON values, as `to_json` writes them, with a checksum.
        """
        try:
            counted = self.CODEC.write(self, without=(self.STATEMENT, *self.PLAIN))
        except UnwrittenError as error:
            remedy = "Use texts, numbers or booleans as group and class values."
            raise InputError.expected(
                "values that JSON can hold", of=self.FILE.what, got=str(error), remedy=remedy
            ) from None
        beside = {name: getattr(self, name) for name in self.PLAIN}
        told = {"results": self._results(), "statement": self._statement.to_dict()}
        return self.FILE.sealed(counted=counted, **beside, **told) | {"signature": None}

    def to_json(self) -> str:
        """Write it as a JSON document.

        Returns
        -------
        str
            The document.
        """
        return json.dumps(self.to_dict(), allow_nan=False) + "\n"

    def write(
        self,
        path: str | os.PathLike[str],
        *,
        key: str | os.PathLike[str] | None = None,
        passphrase: str | None = None,
        note: str | None = None,
        overwrite: bool = False,
    ) -> Path:
        """Write one file with counts and statement: the whole file or nothing.

        Parameters
        ----------
        path : path
            The file.
        key : path, default=None
            Private key that signs counts and statement together. None: not signed.
        passphrase : str, default=None
            Passphrase of the key, where it has one.
        note : str, default=None
            Line of words that is signed, too.
        overwrite : bool, default=False
            Whether an existing file is replaced.

        Returns
        -------
        Path
            The file.
        """
        target, fix = Path(path), "Name another file, or pass overwrite=True."
        free = not target.is_dir() and (overwrite or not target.exists())
        need(free, "a file that is not there yet", of="path", got=str(path), fix=fix)
        private = None if key is None else signing.private_key(key, passphrase)
        return self._written(target, private, note)

    def _written(self, path: Path, private: object = None, note: str | None = None) -> Path:
        """The same, signed by a key that was read before; None: not signed."""
        out = self.to_dict()
        if private is not None:
            text, files = json.dumps(out["statement"]), ((self.FILE.what, out["checksum"]),)
            made = signing.signed_text(text, private, note=note, files=files)
            out["signature"] = json.loads(made.to_json())
        return write(path, json.dumps(out, allow_nan=False) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str], key: str | os.PathLike[str] | None = None) -> Self:
        """Read what `write` wrote.

        Parameters
        ----------
        path : path
            The file.
        key : path, default=None
            Public key of whoever signed the file. Another signature, or none, is an error. None:
            signatures are not looked at.

        Returns
        -------
        the result
            The same, checked. Unexpected content is an error that names it.
        """
        what, remedy = f"the file of a {cls.FILE.what}", "Pass the file that write() wrote."
        text = read_text(path, what=what, most=LARGEST_TEXT, remedy=remedy, error=InputError)
        if key is not None:
            cls.require_signed(text, signing.public_key(key), str(path))
        return cls.from_json(text)

    @classmethod
    def _opened(cls, text: str) -> Node:
        return cls.FILE.opened(text, (*FIELDS, *cls.PLAIN))

    @classmethod
    def examine(cls, text: str) -> tuple[Self, list[Finding]]:
        """Read what `to_json` writes, with all that contradicts it.

        Parameters
        ----------
        text : str
            The document. A malformed one is an error.

        Returns
        -------
        tuple of the result and a list of Finding
            An empty list if it agrees with itself.
        """
        node = cls._opened(text)
        try:
            statement = PrivacyStatement.from_json(json.dumps(node["statement"].value))
            beside = {name: node[name].value for name in cls.PLAIN}
            given: Any = {cls.STATEMENT: statement, **beside}
            found = cls.CODEC.read(node["counted"], cls, **given)
            findings, again = found.check(), json.loads(json.dumps(found._results()))
        except InputError:
            raise
        # A stranger's file may be wrong in any way; each is a malformed one and never a traceback.
        except (FairveilError, *MALFORMED) as error:
            told = str(error) if isinstance(error, FairveilError) else type(error).__name__
            raise cls.FILE.document.refusal(f"a well-formed {cls.FILE.what}", told) from None
        places = [*differing(node["results"].value, again, "")][:10]
        findings += [Finding(True, f"{at} does not follow from the counts") for at in places]
        if node["checksum"].value != checksum(node.mapping()):
            findings.append(Finding(True, "the content is not what the checksum was made of"))
        return found, findings

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` writes.

        A document that is malformed, was changed, or does not follow from its counts is an error.

        Parameters
        ----------
        text : str
            The document.

        Returns
        -------
        the result
            The same, checked.
        """
        found, contradictions = cls.examine(text)
        grave = [finding.sentence for finding in contradictions if finding.grave]
        fix = (
            "Ask its author for the file again; `fairveil verify FILE` lists all that does not fit."
        )
        expected, got = "one that follows from its counts", (grave or [""])[0]
        need(not grave, expected, of=cls.FILE.what, got=got, fix=fix)
        return found

    @classmethod
    def signature_in(cls, text: str) -> Signature | None:
        """The signature in a file, not held against a key: see `require_signed`."""
        node = cls._opened(text)["signature"]
        return None if node.is_null else Signature.from_json(json.dumps(node.value))

    @classmethod
    def require_signed(cls, text: str, public: object, of: str) -> Signature:
        """The signature, made with the private half of this key over these counts and this
        statement; else an error."""
        found, node = cls.signature_in(text), cls._opened(text)
        remedy = "Ask its author to sign it."
        if found is None:
            raise SignatureError.expected("a signature", of=of, got=None, remedy=remedy)
        signing.verify_text(json.dumps(node["statement"].value), found, public, of)
        sealed = checksum(node.mapping())
        if found.files != ((cls.FILE.what, sealed),) or node["checksum"].value != sealed:
            expected, got = "the signed counts", "others, or such that were changed since"
            raise SignatureError.expected(expected, of=of, got=got, remedy=remedy, quote=False)
        return found


def differing(one: Any, other: Any, place: str) -> Iterator[str]:
    """The places where two plain values differ."""
    if isinstance(one, dict) and isinstance(other, dict) and set(one) == set(other):
        for name in one:
            yield from differing(one[name], other[name], f"{place}, {name}" if place else str(name))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for at, (a, b) in enumerate(zip(one, other, strict=True), 1):
            yield from differing(a, b, f"{place} {at}")
    elif type(one) in (int, float) and type(other) in (int, float):
        near = 0.1 if place.endswith(GUESSES) else TOLERANCE
        if not math.isclose(one, other, rel_tol=near, abs_tol=TOLERANCE):
            yield place
    elif type(one) is not type(other) or one != other:
        yield place


def checksum(values: Mapping[str, Any]) -> str:
    """SHA-256 of the content in one spelling. Shows an accident, proves no author."""
    left_out = ("checksum", "signature")
    content = {name: value for name, value in values.items() if name not in left_out}
    return f"sha256:{hashlib.sha256(canonical(content).encode()).hexdigest()}"


def of_release(statement: PrivacyStatement, noise: CountNoise) -> list[Finding]:
    """What in a statement contradicts one release of counts with this noise."""
    out = [Finding(one.grave, f"statement: {one.sentence}") for one in statement.check()]
    if len(statement.events) > 1:
        out.append(Finding(True, "the statement lists more than the one release of these counts"))
    event = statement.events[0] if len(statement.events) == 1 else NoOp()
    law = noise_of(event, statement.promise.neighbours)
    private = statement.is_private and not isinstance(event, NonPrivate)
    same = (
        law is not None
        and law.kind == noise.kind
        and math.isclose(law.scale, noise.scale, rel_tol=1e-9)
    )
    if not same or (not private and noise.kind != "none"):
        other = "another release" if law is None else f"{law.kind} {law.scale:g}"
        said = f"the noise is said to be {noise.kind} {noise.scale:g}, the statement says {other}"
        out.append(Finding(True, said))
    return out
