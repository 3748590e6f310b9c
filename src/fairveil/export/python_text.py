"""A `Program` as a Python file that imports nothing but `math`."""

from __future__ import annotations

from collections.abc import Sequence

from .dialect import Dialect
from .lines import written
from .program import UNIFORM, Classified, NumberColumn, Program, WordColumn
from .reading import unnamed

HELPERS = '''

def _number(row, name, low, high, missing):
    """A number inside its bounds; without bounds it must be finite."""
    value = row[name]
    if value is None or value != value:
        value = missing
    if value is None or isinstance(value, (str, bytes)):
        raise ValueError(f"column {name!r}: expected a number")
    try:
        value = float(value)
    except OverflowError:
        value = math.inf if value > 0 else -math.inf
    if low is None:
        if not math.isfinite(value):
            raise ValueError(f"column {name!r}: expected a finite number")
        return value
    return min(max(value, low), high)


def _word(row, name, codes, missing, unknown, markers):
    """The code of a listed value."""
    value = row[name]
    try:
        if value is None or value != value:
            code = missing
        elif value in codes:
            code = codes[value]
        else:
            code = missing if value in markers else unknown
    except TypeError:
        code = unknown
    if code is None:
        raise ValueError(f"column {name!r}: expected one of the listed values")
    return code


def _finite(score):
    if not math.isfinite(score):
        raise ValueError("expected finite numbers")
    return score


def _only(value, holds):
    if not holds:
        raise ValueError("base_probability: expected shares of at least 0 that sum to 1")
    return value


def _uniform(value):
    if value is None or not 0.0 <= value < 1.0:
        raise ValueError("uniform: expected a number of at least 0 and below 1, drawn anew for every row")
    return float(value)
'''


class Python(Dialect):
    """Python's own words."""

    def number(self, value: float) -> str:
        return f"({value!r})" if value < 0 else repr(float(value))

    def when(self, condition: str, then: str, otherwise: str) -> str:
        return f"({then} if {condition} else {otherwise})"

    def at(self, code: str, values: Sequence[float]) -> str:
        return f"({', '.join(repr(float(value)) for value in values)},)[{code}]"

    def exp(self, of: str) -> str:
        return f"math.exp({of})"

    def log(self, of: str) -> str:
        return f"math.log({of})"

    def both(self, one: str, other: str) -> str:
        return f"({one} and {other})"

    def coded_number(self, column: NumberColumn) -> str:
        low, high = column.bounds or (None, None)
        return f"_number(row, {column.name!r}, {low!r}, {high!r}, {column.missing!r})"

    def coded_word(self, column: WordColumn) -> str:
        codes = {value: code for code, value in enumerate(column.values)}
        return (
            f"_word(row, {column.name!r}, {codes!r}, {column.missing!r}, {column.unknown!r}, "
            f"{column.markers!r})"
        )

    def given(self, name: str) -> str:
        return (
            "_uniform(uniform)" if name == UNIFORM else f"_number(row, {name!r}, None, None, None)"
        )

    def only(self, value: str, condition: str) -> str:
        return f"_only({value}, {condition})"

    def finite(self, score: str) -> str:
        return f"_finite({score})"


def python_text(program: Program) -> str:
    """The file."""
    program = unnamed(program)
    found = written(program, Python(), "v")
    body = "\n".join(f"    {line.name} = {line.text}" for line in found.lines)
    head = f'"""{_about(program)}"""\n\nimport math\n'
    if not isinstance(program.result, Classified):
        told = '    """The prediction for one row, a mapping of columns."""\n'
        return f"{head}{HELPERS}\n\ndef predict(row):\n{told}{body}\n    return {found.result}\n"
    classes = tuple(program.result.classes)
    law = f"({', '.join(found.probabilities)},)"
    drawn = program.uniform
    inside = (
        f"def _row(row{', uniform' if drawn else ''}):\n{body}\n    return {law}, {found.result}\n"
    )
    proba = (
        "def predict_proba(row):\n"
        '    """The probability of each class, in the order of CLASSES, for one row, a mapping of '
        'columns."""\n'
        f"    return _row(row{', 0.0' if drawn else ''})[0]\n"
    )
    predict = f"def predict(row{', uniform' if drawn else ''}):\n    " + (
        '"""The class of one row. `uniform`: a number in [0, 1), drawn anew for every row: this '
        'model decides by it."""\n'
        if drawn
        else '"""The class of one row, a mapping of columns."""\n'
    )
    predict += f"    return CLASSES[_row(row{', uniform' if drawn else ''})[1]]\n"
    return f"{head}\nCLASSES = {classes!r}\n{HELPERS}\n\n{inside}\n\n{proba}\n\n{predict}"


def _about(program: Program) -> str:
    inputs = program.inputs
    text = (
        f"Decisions of a {program.about}, written by Fairveil. Columns of a row: "
        f"{', '.join(inputs.names)}."
    )
    if not inputs.numbers and not inputs.words:
        text += f" And {program.others[0]}: what the base classifier says."
    return text.replace("\\", "\\\\").replace('"', '\\"')
