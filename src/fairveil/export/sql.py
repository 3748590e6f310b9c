"""A fitted estimator as one SQL query: nothing but SELECT, CASE, EXP and LN of the standard.

A query computes one row in steps. Each line gives one value a name, by values that have names
already, and lines of one depth are one step:

    scores = intercept + sum_j w_j z_j + sum_c w[offset_c + code_c]

Guarantees (tests/export/):
1. Probabilities are those of `predict_proba`, and the class is that of `predict` given the same
   uniform number.
2. Rows for which `predict` raises an error have NULL.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from .. import _checks
from .._types import Floats
from ..errors import InputError
from ..estimators import wrapped
from ..estimators.coding import Side
from ..estimators.fair import FairClassifier, FairRegressor
from ..estimators.post_processing import CLOSE, FairPostProcessor
from ..models import (
    DerandomisedModel,
    GroupedLinearModel,
    LinearModel,
    MixtureModel,
    ShiftedModel,
)
from ..models.postprocessed import SURE
from .columns import (
    CODE,
    Inputs,
    NumberColumn,
    WordColumn,
    inputs_of,
    opened,
    own_base,
    plain,
    refusal,
    require_names,
    word_column,
)

PREDICTION = "prediction"
UNIFORM, BASE_SCORE, BASE_DECISION = "uniform", "base_score", "base_decision"
BASE_PROBABILITY = "base_probability[{}]"
"""Names of inputs that are no columns of the table; of probabilities each has its class in it."""
LONGEST = 1_000_000
"""Words of a query whose steps are put into one another, beyond which each is computed once:
databases end at such queries."""
IN_A_ROW = 100
"""Terms of a sum that stand in a row: more are put into brackets, since databases bound how deep an
expression is."""
MOST_EXPONENT = 700.0
"""exp of more is no float64; a probability is then 0 or 1 to the last bit."""


def sql_query(
    model: object,
    *,
    table: str = "rows",
    keep: Sequence[str] = (),
    materialized: bool | None = None,
) -> str:
    """One query, whose rows have `prediction` and, of classifiers, a column `probability[...]` for
    each class.

    Rows for which `predict` raises an error have NULL. A randomized model reads a column `uniform`
    of numbers in [0, 1).

    Parameters
    ----------
    model : estimator
        A fitted estimator of this library. Networks, and mixtures of classifiers made elsewhere,
        are refused.
    table : str, default="rows"
        The table; a dot separates its schema.
    keep : list of str, default=()
        Columns of the table that are handed on: its key, for example.
    materialized : bool, default=None
        Write ``AS MATERIALIZED``, which is no standard SQL: PostgreSQL, SQLite and DuckDB then
        compute each step once. Without it they put the steps into one another, and mixtures and
        thresholds may take minutes. None: it is written only where that would make the query longer
        than a million words.

    Returns
    -------
    str
        The query. Write it to a file, or run it.

    Raises
    ------
    InputError
        If the model cannot be written as SQL, or a name cannot.

    See Also
    --------
    to_sklearn : Makes a pipeline of scikit-learn.
    """
    if isinstance(keep, str) or not all(isinstance(name, str) for name in keep):
        remedy = "Pass keep=['id']."
        raise InputError.expected("a list of names of columns", of="keep", got=keep, remedy=remedy)
    table = _checks.instance(str, "table", table, "Pass table='applicants'.")
    once = None if materialized is None else _checks.truth(materialized=materialized)
    estimator = opened(model)
    inputs, prefix = inputs_of(estimator), "fv_"
    while any(name.casefold().startswith(prefix) for name in (*inputs.names, *keep)):
        prefix = f"{prefix}_"
    lines = _Lines(inputs, prefix)
    results = _results(lines, estimator)
    require_names(inputs, lines.others)
    taken = [name for name in keep if name in dict(results)]
    if taken or len(set(keep)) != len(keep):
        remedy = "Keep each other column once."
        raise InputError.expected(
            "names other than the results'", of="keep", got=taken or list(keep), remedy=remedy
        )
    return _query(lines, results, table, tuple(keep), once)


def _query(
    lines: _Lines,
    results: Sequence[tuple[str, str]],
    table: str,
    keep: Sequence[str],
    once: bool | None,
) -> str:
    """The text, of lines and (name, expression) of the results."""
    read = dict.fromkeys((*keep, *lines.inputs.names, *lines.others))
    named, source = ".".join(map(name_of, table.split("."))), f"{lines.prefix}rows"
    parts = [f"{source} AS (\n  SELECT {', '.join(map(name_of, read))}\n  FROM {named}\n)"]
    for level in range(1, max((deep for _, _, deep in lines.lines), default=0) + 1):
        here = ((name, text) for name, text, deep in lines.lines if deep == level)
        added = "".join(f",\n    {text} AS {name}" for name, text in here)
        step = f"{lines.prefix}step{level}"
        parts.append(f"{step} AS (\n  SELECT {source}.*{added}\n  FROM {source}\n)")
        source = step
    chosen = [*map(name_of, keep), *(f"{text} AS {name_of(name)}" for name, text in results)]
    if lines.inlined(text for _, text in results) > LONGEST if once is None else once:
        parts = [part.replace(" AS (", " AS MATERIALIZED (", 1) for part in parts]
    return f"WITH {', '.join(parts)}\nSELECT " + ",\n  ".join(chosen) + f"\nFROM {source}\n"


# What an estimator computes


def _results(lines: _Lines, estimator: Any) -> list[tuple[str, str]]:
    """(name, expression): the prediction, and a probability of each class."""
    if isinstance(estimator, FairRegressor):
        model, target = estimator.model_, estimator.target_
        score = lines.linear(np.asarray(model.weights), float(model.intercept))
        scaled = f"{_number(target.half)} * {score} + {_number(target.centre)}"
        return [(PREDICTION, lines.unless_refused(_double(lines.let(scaled, score))))]
    own = isinstance(estimator, FairPostProcessor)
    if isinstance(estimator.model_, ShiftedModel):
        law, drawn = _moved(lines, estimator), estimator.model_.temperature is not None
    elif own:
        law, drawn = _mixed_table(lines, estimator)
    else:
        law, drawn = lines.decisions(estimator.model_), _draws(estimator)
    probabilities = law if own else _probabilities(lines, estimator)
    code = lines.drawn(law) if drawn else lines.certain(law)
    classes = plain(estimator.classes_)
    decided = " ".join(f"WHEN {place} THEN {literal(value)}" for place, value in enumerate(classes))
    return [
        (PREDICTION, lines.unless_refused(f"CASE {code} {decided} END")),
        *(
            (f"probability[{value}]", lines.unless_refused(_double(name)))
            for value, name in zip(classes, probabilities, strict=True)
        ),
    ]


def _draws(estimator: Any) -> bool:
    model = estimator.model_
    return isinstance(model, MixtureModel) and int(np.count_nonzero(model.weights)) > 1


def _probabilities(lines: _Lines, estimator: Any) -> Names:
    """What `predict_proba` gives: the distribution of decisions, but for models whose probabilities
    are their own."""
    model = estimator.model_
    if isinstance(estimator, FairClassifier) and isinstance(model, LinearModel):
        return lines.softmax(lines.scores(model))
    return lines.decisions(model)


def _mixed_table(lines: _Lines, estimator: FairPostProcessor) -> tuple[Names, bool]:
    """A table by group, applied to bins of the base's score, or to its decisions; and whether
    chance decides."""
    model, base, drawn = estimator.model_, own_base(estimator), False
    if base is None:  # another library's: its answer is an input
        if model.edges is None:
            column = word_column(BASE_DECISION, plain(estimator.classes_))
            lines.others.append(BASE_DECISION)
            code = lines.guarded(_coded_word(column))
            each = (_when(f"{code} = {k}", ONE, ZERO) for k in range(len(column.values)))
            answer: Names = [lines.let(text, code) for text in each]
        else:
            answer = lines.bins(lines.given(BASE_SCORE), model.edges.tolist())
    elif model.edges is None:
        drawn, by_law = _draws(base), wrapped.is_randomised(base)
        answer = _probabilities(lines, base) if by_law else lines.decisions(base.model_)
    elif estimator.predict_method_ == wrapped.SCORES[0]:
        (score,) = lines.scores(base.model_)
        answer = lines.bins(score, model.edges.tolist())
    else:
        score = lines.logit(_probabilities(lines, base)[1], SURE)
        answer = lines.bins(score, model.edges.tolist())
    by_chance = bool(((model.mixing > 0) & (model.mixing < 1)).any())
    return lines.tabled(answer, model.mixing), by_chance or drawn


def _moved(lines: _Lines, estimator: FairPostProcessor) -> Names:
    """Probabilities less offsets by group: drawn by their softmax at a temperature, or the largest
    decides."""
    model, base, classes = estimator.model_, own_base(estimator), plain(estimator.classes_)
    if base is None:  # another library's: its probabilities are inputs
        law = lines.given_law([BASE_PROBABILITY.format(value) for value in classes], CLOSE)
    else:
        law = _probabilities(lines, base)
    scores = []
    for name, offsets in zip(law, model.offsets.T, strict=True):
        less = lines.let(f"{name} - {_at(lines.cell, offsets.tolist())}", name, lines.cell)
        heat = model.temperature
        scores.append(less if heat is None else lines.let(f"{less} / {_number(heat)}", less))
    return lines.hard(scores) if model.temperature is None else lines.softmax(scores)


Names = Sequence[str]
"""Names of values: one an output, or one a class."""


class _Lines:
    """Lines as they are written.

    `lines`: name, expression, and level: 1 + that of the names in it. `guards`: names of values
    that refused rows do not have. `others`: inputs that are no columns of the fit. `cell`: the name
    of the group's cell.
    """

    def __init__(self, inputs: Inputs, prefix: str) -> None:
        self.inputs, self.prefix = inputs, prefix
        self.lines: list[tuple[str, str, int]] = []
        self.guards: list[str] = []
        self.others: list[str] = []
        self.cell = ""
        self._levels: dict[str, int] = {}
        self._done: dict[tuple[str, int], Names] = {}
        self._numbers: list[str] = []
        self._codes: list[str] = []
        self._read()

    def let(self, text: str, *of: str) -> str:
        """A name for an expression that reads `of`."""
        name = f"{self.prefix}{len(self.lines)}"
        level = 1 + max((self._levels.get(one, 0) for one in of), default=0)
        self.lines.append((name, text, level))
        self._levels[name] = level
        return name

    def guarded(self, text: str, *of: str) -> str:
        """A value that refused rows do not have."""
        name = self.let(text, *of)
        self.guards.append(name)
        return name

    def unless_refused(self, text: str) -> str:
        """NULL where a row is refused."""
        condition = " OR ".join(f"{guard} IS NULL" for guard in self.guards)
        return f"CASE WHEN {condition} THEN NULL ELSE {text} END" if condition else text

    def inlined(self, results: Iterable[str]) -> int:
        """Words of results with every name replaced by its expression, as a database may do it."""
        size: dict[str, int] = {}

        def words(text: str) -> int:
            found = re.findall(rf"{self.prefix}\d+|[^\s()]+", text)
            return sum(size.get(word, 1) for word in found)

        for name, text, _ in self.lines:
            size[name] = words(text)
        return sum(map(words, results))

    # Columns

    def _read(self) -> None:
        inputs, shapes = self.inputs, self.inputs.shapes
        raw = [self._scaled(column) for column in inputs.numbers]
        words = {
            one: self.guarded(_coded_word(one))
            for one in dict.fromkeys((*inputs.words, *inputs.groups))
        }
        codes = [words[column] for column in inputs.words]

        def position(side: Side) -> str:
            if side.values:
                return codes[side.place]
            name = raw[side.place]
            reached = [_when(f"{name} >= {_number(edge)}", "1", "0") for edge in side.edges]
            return self.let(plus(reached) if reached else "0", name)

        self._numbers, self._codes = list(raw), codes
        if shapes is not None:
            codes += [position(side) for side in shapes.steps]
            for one, other in shapes.pairs:
                a, b = position(one), position(other)
                codes.append(self.let(f"{a} * {other.size} + {b}", a, b))
            for side in shapes.along:
                self._numbers[side.place] = self._along(raw[side.place], side.edges)
        if inputs.standard is not None:
            moments = zip(inputs.standard.means, inputs.standard.deviations, strict=True)
            self._numbers = [
                self.let(f"({name} - {_number(mean)}) / {_number(deviation)}", name)
                for name, (mean, deviation) in zip(self._numbers, moments, strict=True)
            ]
        for column in inputs.groups:
            own, size = words[column], len(column.values)
            before = self.cell
            self.cell = self.let(f"{before} * {size} + {own}", before, own) if before else own

    def _scaled(self, column: NumberColumn) -> str:
        name = self.guarded(_coded_number(column))
        if column.bounds is None:
            return name
        scaled = self.let(f"({name} - {_number(column.center)}) / {_number(column.half)}", name)
        return self._between(scaled, -1.0, 1.0)

    def _between(self, name: str, low: float, high: float) -> str:
        inner = _when(f"{name} > {_number(high)}", _number(high), name)
        return self.let(_when(f"{name} < {_number(low)}", _number(low), inner), name)

    def _along(self, name: str, edges: Sequence[float]) -> str:
        """-1 + sum_i 2 / m x (how much of part i lies below), in one line."""
        share, parts = 2.0 / max(1, len(edges) - 1), [_number(-1.0)]
        for low, high in pairwise(edges):
            inside = f"({name} - {_number(low)}) / {_number(high - low)}"
            inner = _when(f"{name} >= {_number(high)}", ONE, inside)
            parts.append(f"{_number(share)} * {_when(f'{name} <= {_number(low)}', ZERO, inner)}")
        return self.let(plus(parts), name)

    def given(self, name: str) -> str:
        """An input that is no column of the fit."""
        self.others.append(name)
        value = _double(name_of(name))
        if name == UNIFORM:
            value = f"CASE WHEN {value} >= {ZERO} AND {value} < {ONE} THEN {value} END"
        return self.guarded(value)

    # Scores: one name an output

    def scores(self, model: LinearModel | GroupedLinearModel) -> Names:
        """Of a linear model, or with offsets by group; each is computed once."""
        key = ("scores", id(model))
        if key not in self._done:
            inner = model.linear if isinstance(model, GroupedLinearModel) else model
            pairs = zip(inner.weights, inner.intercept.tolist(), strict=True)
            own = [self.linear(weights, intercept) for weights, intercept in pairs]
            if isinstance(model, GroupedLinearModel):
                own = [
                    self.let(f"{name} + {_at(self.cell, offsets.tolist())}", name, self.cell)
                    for name, offsets in zip(own, model.offsets.T, strict=True)
                ]
            self._done[key] = own
        return self._done[key]

    def linear(self, weights: Floats, intercept: float) -> str:
        """intercept + weights . (numbers, one-hot codes); a row whose score is not finite is
        refused."""
        used, parts, start = [], [_number(intercept)], len(self._numbers)
        for name, weight in zip(self._numbers, weights.tolist(), strict=False):
            if weight:
                parts.append(f"{_number(weight)} * {name}")
                used.append(name)
        for code, size in zip(self._codes, self.inputs.code_sizes, strict=True):
            part = weights[start : start + size].tolist()
            start += size
            if any(part):
                parts.append(_at(code, part))
                used.append(code)
        total = self.let(plus(parts), *used)
        return self.guarded(_finite(total), total)

    def logit(self, p: str, sure: float) -> str:
        """log(p / (1 - p)), at most `sure` in size."""
        safe = _when(f"{p} >= {ONE}", _number(sure), f"LN({p}) - LN(({ONE} - {p}))")
        found = self.let(_when(f"{p} <= {ZERO}", _number(-sure), safe), p)
        return self._between(found, -sure, sure)

    # Distributions: one name a class

    def decisions(self, model: object) -> Names:
        """The distribution of a model's decisions; each is computed once."""
        key = ("decisions", id(model))
        if key not in self._done:
            self._done[key] = self._decisions(model)
        return self._done[key]

    def _decisions(self, model: object) -> Names:
        if isinstance(model, LinearModel | GroupedLinearModel):
            return self.hard(self.scores(model))
        if isinstance(model, DerandomisedModel):
            return self.hard(self.decisions(model.model))
        if isinstance(model, MixtureModel):
            kept = [place for place, weight in enumerate(model.weights) if weight]
            weights = [float(model.weights[place]) for place in kept]
            return self.mixed(weights, [self.decisions(model.models[place]) for place in kept])
        raise refusal(f"a {type(model).__name__}", CODE)

    def mixed(self, weights: Sequence[float], laws: Sequence[Names]) -> Names:
        """sum_t weights_t law_t."""
        out = []
        for names in zip(*laws, strict=True):
            terms = zip(weights, names, strict=True)
            out.append(self.let(plus([f"{_number(w)} * {name}" for w, name in terms]), *names))
        return out

    def _above(self, name: str, least: float) -> Names:
        second = self.let(_when(f"{name} > {_number(least)}", ONE, ZERO), name)
        return [self.let(f"{ONE} - {second}", second), second]

    def hard(self, scores: Names) -> Names:
        """1 for the class with the largest score, the first of several; one score decides for the
        second class above 0."""
        if len(scores) == 1:
            return self._above(scores[0], 0.0)
        out = []
        for k, name in enumerate(scores):
            wins = [f"{name} > {other}" for other in scores[:k]]
            wins += [f"{name} >= {other}" for other in scores[k + 1 :]]
            out.append(self.let(_when(" AND ".join(wins), ONE, ZERO), *scores))
        return out

    def softmax(self, scores: Names) -> Names:
        """exp(s_k) / sum_j exp(s_j); one score is the second class's against 0."""
        if len(scores) == 1:
            score = self._between(scores[0], -MOST_EXPONENT, MOST_EXPONENT)
            power = self.let(f"EXP((0 - {score}))", score)
            second = self.let(f"{ONE} / ({ONE} + {power})", power)
            return [self.let(f"{power} / ({ONE} + {power})", power), second]
        largest = scores[0]
        for score in scores[1:]:
            largest = self.let(_when(f"{score} > {largest}", score, largest), score, largest)
        powers = []
        for score in scores:
            less = self.let(f"{score} - {largest}", score, largest)
            below = self._between(less, -MOST_EXPONENT, 0.0)
            powers.append(self.let(f"EXP({below})", below))
        total = self.let(" + ".join(powers), *powers)
        return [self.let(f"{power} / {total}", power, total) for power in powers]

    def bins(self, score: str, edges: Sequence[float]) -> Names:
        """1 for the bin of a score: how many edges it is above."""
        above = [self.let(_when(f"{score} > {_number(edge)}", ONE, ZERO), score) for edge in edges]
        if not above:
            return [self.let(ONE)]
        first = self.let(f"{ONE} - {above[0]}", above[0])
        between = [self.let(f"{low} - {high}", low, high) for low, high in pairwise(above)]
        return [first, *between, above[-1]]

    def given_law(self, inputs: Sequence[str], close: float) -> Names:
        """Probabilities that another library's model makes. A row is refused if one is less than 0,
        or their sum is not 1, by more than `close`."""
        names = [self.given(name) for name in inputs]
        total = self.let(plus(names), *names)
        near = [f"{total} >= {_number(1.0 - close)}", f"{total} <= {_number(1.0 + close)}"]
        near += [f"{name} >= {_number(-close)}" for name in names]
        self.guarded(f"CASE WHEN {' AND '.join(near)} THEN {total} END", total)
        return names

    def tabled(self, law: Names, table: Floats) -> Names:
        """sum_j p_j table[cell, j, k]; `table` (1 or cells, classes of the law, classes)."""
        out, of = [], (*law, self.cell) if self.cell else law
        for k in range(table.shape[2]):
            parts = []
            for j, name in enumerate(law):
                column = table[:, j, k].tolist()
                if any(column):
                    same = len(set(column)) == 1
                    parts.append(
                        f"{_number(column[0]) if same else _at(self.cell, column)} * {name}"
                    )
            out.append(self.let(plus(parts) if parts else ZERO, *of))
        return out

    # Classes

    def drawn(self, law: Names) -> str:
        """The code that a uniform number draws: how many ends of the classes before the last it has
        reached; a class of probability 0 is never drawn."""
        uniform, last = self.given(UNIFORM), "0"
        for k, name in enumerate(law):
            last = _when(f"{name} > {ZERO}", str(k), last)
        reached, end = [], ""
        for name in law[:-1]:
            end = self.let(f"{end} + {name}", end, name) if end else name
            reached.append(self.let(_when(f"{uniform} >= {end}", "1", "0"), uniform, end))
        count, most = self.let(" + ".join(reached), *reached), self.let(last, *law)
        return self.let(_when(f"{count} > {most}", most, count), count, most)

    def certain(self, law: Names) -> str:
        """The code of the class that has all of it."""
        code = "0"
        for k, name in enumerate(law):
            code = _when(f"{name} > {_number(0.5)}", str(k), code)
        return self.let(code, *law)


# Words of SQL


def plus(parts: Sequence[str]) -> str:
    """A sum."""
    if len(parts) <= IN_A_ROW:
        return " + ".join(parts)
    runs = range(0, len(parts), IN_A_ROW)
    return " + ".join(f"({plus(parts[at : at + IN_A_ROW])})" for at in runs)


def _number(value: float) -> str:
    """With an exponent, which the standard reads as floating point."""
    text = f"{float(value)!r}".replace("e", "E")
    text = text if "E" in text else f"{text}E0"
    return f"({text})" if value < 0 else text


ONE, ZERO, LARGEST = _number(1.0), _number(0.0), _number(float(np.finfo(np.float64).max))


def _when(condition: str, then: str, otherwise: str) -> str:
    return f"CASE WHEN {condition} THEN {then} ELSE {otherwise} END"


def _at(code: str, values: Sequence[float]) -> str:
    parts = (f"WHEN {place} THEN {_number(value)}" for place, value in enumerate(values))
    return f"CASE {code} {' '.join(parts)} END"


def _double(text: str) -> str:
    return f"CAST({text} AS DOUBLE PRECISION)"


def _finite(value: str) -> str:
    return f"CASE WHEN ABS({value}) <= {LARGEST} THEN {value} END"


def _coded_number(column: NumberColumn) -> str:
    value = _double(name_of(column.name))
    if column.bounds is None:
        return _finite(value)
    low, high = map(_number, column.bounds)
    missing = "" if column.missing is None else f" ELSE {_number(column.missing)}"
    ends = f"WHEN {value} < {low} THEN {low} WHEN {value} > {high} THEN {high}"
    return f"CASE {ends} WHEN {value} IS NOT NULL THEN {value}{missing} END"


def _coded_word(column: WordColumn) -> str:
    name = name_of(column.name)
    listed = "".join(f" OR {name} = {literal(marker)}" for marker in column.markers)
    missing = "NULL" if column.missing is None else column.missing
    parts = [
        *(f"WHEN {name} = {literal(value)} THEN {k}" for k, value in enumerate(column.values)),
        f"WHEN {name} IS NULL{listed} THEN {missing}",
    ]
    unknown = "" if column.unknown is None else f" ELSE {column.unknown}"
    return f"CASE {' '.join(parts)}{unknown} END"


def name_of(name: str) -> str:
    """A quoted name.

    >>> name_of("hours a week")
    '"hours a week"'
    """
    if not name or any(ord(letter) < 32 for letter in name):
        remedy = "Rename that column or table."
        raise InputError.expected("a name that SQL can write", of="name", got=name, remedy=remedy)
    return '"' + name.replace('"', '""') + '"'


def literal(value: Hashable) -> str:
    """A value as SQL writes it.

    >>> [literal(value) for value in ("it's", 3, 2.5, True)]
    ["'it''s'", '3', '2.5E0', 'TRUE']
    """
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        if "\0" in value:
            remedy = "Rename it in the schema, and fit again."
            raise InputError.expected(
                "a value that SQL can write", of="values", got=value, remedy=remedy
            )
        return "'" + value.replace("'", "''") + "'"
    return str(value) if isinstance(value, int) else _number(float(value))  # type: ignore[arg-type]
