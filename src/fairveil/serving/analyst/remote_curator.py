"""A curator that is asked through a door: the methods of `Curator`, and the answers of the
holder's.

Guarantees (tests/serving/test_serving_fits.py, tests/serving/test_serving_crashes.py):
1. One method that releases something is one request, under one key: sent again it is answered and
   charged once.
2. The plan is followed here, too: an answer that it has no room for is refused before it is sent.
3. What the door cannot do is refused with its reason: code of the caller beside rows, choices by
   functions, weights.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from ...core.events import Event, NoOp, compose
from ...core.noise import NoiseSource
from ...core.promise import Promise
from ...curator import FULL, Curator, Full, Log, LogEntry, Measurement, Part, Question, pricing
from ...curator.bounds import cap_of
from ...curator.budget import Budget
from ...curator.elsewhere import DescribedRule, RowsElsewhere
from ...curator.measurements import Measurements, as_measurements
from ...curator.prepared import is_many
from ...curator.quiet.calls import Troubles
from ...curator.refusals import require_features_apart
from ...curator.rows.public_table import PublicTable
from ...curator.rows.sampling import Batch
from ...errors import InputError, PrivacyError
from ...facts import Cells, RowLayout
from ...ledger import current
from ...statement.document import NamedGroups, PrivacyStatement, PublicFact
from ..wire.catalogue import CodesHandle, ModelHandle, described, measurement_described
from ..wire.described import rule_described
from ..wire.messages import Message, Packing
from .holder import HolderData, run_content

Floats = npt.NDArray[np.float64]
MOST_LINE = 200


class RemoteRows(RowsElsewhere):
    """The rows of one data set, coded as a view says."""

    def __init__(
        self,
        layout: RowLayout,
        data: HolderData,
        view: dict[str, Any],
        *,
        weight_cap: float | None = None,
        by_person: bool = False,
    ) -> None:
        super().__init__(layout, data.exact_rows, weight_cap=weight_cap, by_person=by_person)
        self.data, self.view = data, view

    def open_run(self, promise: Promise, **options: Any) -> Curator:
        """A run with the holder."""
        return RemoteCurator(self, promise, **options)


class RemoteCurator(Curator):
    """One run with a holder. See `Curator` for what its methods answer."""

    def __init__(
        self,
        rows: RemoteRows,
        promise: Promise,
        *,
        plan: Event | Iterable[Event] | None = None,
        cap: object = None,
        noise: NoiseSource | Sequence[NoiseSource] | None = None,
        public_rows: int | None = None,
        facts: Iterable[PublicFact] = (),
        bounds: Iterable[Any] = (),
        threads: int | None = None,
        journal: object = None,
        earlier: object = (),
        ledger: object = None,
        purpose: str = "",
        stated_clips: Sequence[float] | None = None,
        one_group: bool = False,
    ) -> None:
        whole = None if plan is None else compose([plan] if isinstance(plan, Event) else plan)
        require_servable(
            promise,
            whole,
            ledger=ledger,
            journal=journal,
            earlier=earlier,
            cap=cap,
            bounds=tuple(bounds),
        )
        assert whole is not None
        require_features_apart(rows.layout, promise.protects)
        self.promise, self.layout = promise, rows.layout
        self._rows, self._data = rows, rows.data
        self._public_rows = public_rows
        self._scalings = ()
        self._troubles = Troubles()
        self._budget = Budget(promise, whole, None)
        self.journal = None
        self.log = Log()
        self._facts = tuple(facts)
        self._attached = 0
        sources = (
            [noise] if isinstance(noise, NoiseSource) else list(noise or [NoiseSource.secure()])
        )
        roots = [source.seeded_root for source in sources]
        seeds = None if None in roots else [cast(bytes, root).hex() for root in roots]
        content = run_content(
            self._data.name,
            promise,
            whole,
            view=rows.view | ({"one_group": True} if one_group else {}),
            sources=len(sources),
            seeds=seeds,
            public_rows=public_rows,
            stated_clips=None if stated_clips is None else list(map(float, stated_clips)),
            purpose=_short(purpose),
        )
        self._run = (
            self._data._connection.act("runs", body=Packing().packed(content)).content["run"].text()
        )
        self._ended = False

    # -- asking ------------------------------------------------------------------------------------

    def answer(
        self,
        measurements: Measurements,
        batch: Batch = FULL,
        *,
        purpose: str = "",
    ) -> list[Floats]:
        """One joint noisy answer of the holder's curator, in one request."""
        asked = as_measurements(measurements)
        event = self.describe(asked, batch)
        packing = Packing()
        content = {
            "asks": [measurement_described(measurement, packing) for measurement in asked],
            "batch": _batch(batch),
            "purpose": _short(purpose),
        }
        with self._budget.release(event) as number:
            message = self._done("ask", packing.packed(content))
            answers = [
                np.array(message.array(one), np.float64)
                for one in message.content["answers"].list(len(asked))
            ]
            for measurement, answer in zip(asked, answers, strict=True):
                self._require_shape(measurement, answer)
            self._logged(
                number, event, tuple(measurement.question.name for measurement in asked), purpose
            )
        return answers

    def choose(
        self,
        question: Question | Sequence[Question],
        epsilon: float,
        *,
        cell_weights: Sequence[float] | None = None,
        costs: object = None,
        score: object = None,
        purpose: str = "",
    ) -> int:
        """The exponential mechanism, at the holder's."""
        if score is not None:
            raise _refused(
                "a choice by a function of sums, which would run beside the rows",
                "Choose by costs or cell_weights.",
            )
        asked = pricing.as_questions(question)
        event = self.describe_choice(asked, epsilon)
        packing = Packing()
        content = {
            "questions": [described(one, packing) for one in asked],
            "epsilon": float(epsilon),
            "cell_weights": None
            if cell_weights is None
            else packing.put(np.asarray(cell_weights, np.float64)),
            "costs": None if costs is None else packing.put(np.asarray(costs, np.float64)),
            "purpose": _short(purpose),
        }
        with self._budget.release(event) as number:
            message = self._done("choose", packing.packed(content))
            index = int(message.array(message.content["index"])[0])
            self._logged(number, event, tuple(f"choice by {one.name}" for one in asked), purpose)
        return index

    def attach(
        self,
        model: Callable[..., Any] | DescribedRule,
        *,
        columns_read: Iterable[str] = ("features",),
        title: str = "a model made elsewhere",
    ) -> Any:
        """A finished model that was described; its decisions, or probabilities, stay with the
        holder."""
        kind = "probabilities" if isinstance(model, DescribedRule) and model.soft else "decisions"
        return self._attach(model, 0, columns_read, title, kind)

    def attach_codes(
        self,
        codes: object,
        count: int,
        *,
        columns_read: Iterable[str] = ("features",),
        title: str = "codes made elsewhere",
    ) -> Any:
        """Codes of a finished model that was described."""
        return self._attach(codes, count, columns_read, title, "codes")

    def public_table(self, cells: Cells | None = None, *, most: int = 1 << 25) -> PublicTable:
        """Features and labels, where they are public and the holder serves them."""
        if not self.promise.features_are_public or not self._data.features_served:
            raise _refused(
                "the table of features and labels",
                "Choose a method that asks sums alone; or ask the holder to serve them.",
            )
        message = self._done("table", Packing().packed({"most": int(most)}))
        found = message.content
        features, labels, weights = (
            np.array(message.array(found[name])) for name in ("features", "labels", "weights")
        )
        return PublicTable(
            features, np.asarray(labels, np.intp), weights, found["step"].whole(), None
        )

    def rescale(self, scale: object, shift: object) -> None:
        """New units of the numbers, at the holder's."""
        packing = Packing()
        scale, shift = (np.array(values, np.float64) for values in (scale, shift))
        content = {"scale": packing.put(scale), "shift": packing.put(shift)}
        self._done("rescale", packing.packed(content))
        for values in (scale, shift):
            values.setflags(write=False)
        self._scalings = (*self._scalings, (scale, shift))

    def describe_range(
        self, question: Question | Sequence[Question], score: object
    ) -> tuple[float, float]:
        """Of a choice by a function, which no door makes."""
        raise _refused(
            "a choice by a function, which would run beside the rows",
            "Choose by costs or cell_weights.",
        )

    # -- the end -----------------------------------------------------------------------------------

    def close(self) -> None:
        """End the run: the holder settles it by what was released."""
        self._budget.close()
        if not self._ended:
            self._ended = True
            self._data._connection.act("runs", self._run, "close", body=Packing().packed({}))

    def finish(self) -> Event:
        """The plan was done."""
        self._done("finish", Packing().packed({}))
        self._ended = True
        self._budget.close()
        return compose(self.log.events)

    def statement(
        self,
        *,
        not_covered: Iterable[str] = (),
        tuning: str | None = None,
        earlier_releases: str | None = None,
        groups: Iterable[NamedGroups] = (),
    ) -> PrivacyStatement:
        """The holder's statement, its signature checked."""
        # their names, and whether shares were fixed, are the holder's to say
        told = [{"column": one.column, "limits": list(one.limits)} for one in groups]
        content = {
            "not_covered": list(not_covered),
            "tuning": tuning,
            "earlier_releases": earlier_releases,
            "groups": told,
        }
        message = self._done("statement", Packing().packed(content))
        # Written as the holder wrote it, whose digest was signed.
        text = json.dumps(message.content["statement"].mapping(), indent=2, allow_nan=False) + "\n"
        signature = message.content["signature"]
        self._data.checked(text, None if signature.is_null else json.dumps(signature.mapping()))
        return PrivacyStatement.from_json(text)

    # -- inside ------------------------------------------------------------------------------------

    def _done(self, act: str, body: bytes) -> Message:
        return self._data._connection.act("runs", self._run, act, body=body)

    def _attach(
        self, rule: object, count: int, columns_read: Iterable[str], title: str, kind: str
    ) -> Any:
        if not isinstance(rule, DescribedRule):
            raise _refused(
                "code of the caller beside the rows",
                "Pass a fitted linear or additive model of Fairveil, which is described.",
            )
        packing = Packing()
        content = {
            **rule_described(rule, packing),
            "count": max(count, rule.decisions),
            "title": title,
            "handle": kind,
        }
        number = self._done("attach", packing.packed(content)).content["handle"].whole()
        if kind == "codes":
            return CodesHandle(number, count, rule.columns_read, title)
        return ModelHandle(number, len(self.layout.classes or ()), frozenset(columns_read), title)

    def _require_shape(self, measurement: Measurement, answer: Floats) -> None:
        question = measurement.question
        wanted = question.shape(self.layout)
        wanted = (question.models, *wanted) if is_many(question) else wanted
        if answer.shape != wanted:
            remedy = "Ask the holder which version the door has."
            raise PrivacyError.expected(
                f"an answer of shape {wanted}", of="the door", got=answer.shape, remedy=remedy
            )

    def _logged(self, number: int, event: Event, names: tuple[str, ...], purpose: str) -> None:
        if not isinstance(event, NoOp):
            self.log.append(LogEntry(number, event, names, "as asked", purpose))

    @property
    def _cap(self) -> float | None:
        return cap_of(self._rows, self.promise)


def require_servable(
    promise: Promise,
    plan: Event | None,
    *,
    ledger: object,
    journal: object,
    earlier: object,
    cap: object,
    bounds: tuple[Any, ...],
) -> None:
    """What no door does, refused here with the reason."""
    if not promise.is_private:
        raise _refused("a fit without privacy", "Pass a finite epsilon.")
    if plan is None or cap is not None:
        raise _refused("answers that no plan fixed", "Use a method that plans: all estimators do.")
    if ledger is not None or current() is not None:
        raise _refused(
            "a ledger of the analyst's", "Leave ledger= out: the holder's ledger has the budget."
        )
    if journal is not None or earlier != ():
        raise _refused(
            "a checkpoint of the analyst's", "Leave checkpoint= out: the holder keeps the run."
        )
    if bounds:
        raise _refused("anything read from the data", "Leave unsafe_data_dependent_bounds=False.")


def _refused(got: str, remedy: str) -> InputError:
    return InputError.expected(
        "what a door can do", of="remote data", got=got, remedy=remedy, quote=False
    )


def _short(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)[:MOST_LINE]


def _batch(batch: Batch) -> dict[str, Any]:
    if isinstance(batch, Full):
        return {"kind": "full"}
    if isinstance(batch, Part):
        return {"kind": "part", "number": batch.number, "parts": batch.parts}
    return {"kind": "poisson", "rate": batch.rate}
