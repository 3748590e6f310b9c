"""What `fairveil fit` prints: the first lines of the report, a line a fact, `label  value`, the
verdicts first.

    fairness    met in training, cannot be told on held-out rows: the selection rates of any two groups of sex differ by ...
                Training rows: 3.1 points (95% interval over the noise 2.3 to 3.9 points): met
                Held-out people: 4.8 points (95% interval 2.1 to 7.4 points): cannot be told
    privacy     ...
    error       ...
    other gaps  ...

Words and numbers are those of the report (`report.first_lines`), so that the page and the terminal
never differ.

Guarantee (tests/cli/test_cli_summary.py):
1. The first word of a constraint's line is "met" only where every verdict about it is "met", or
   where it says of which rows; and only of a model that is shown to be better than one answer for
   everybody.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..report import Report
from ..report.first_lines import (
    ERROR_NOT_KNOWN,
    NOT_HELD_OUT,
    NOTHING_REQUIRED,
    Clause,
    constant_words,
    first_lines,
)
from .printing import Fact

HELD_OUT = "--holdout 0.25 or --test TABLE measures it on rows that the fit has not seen"
REQUIRE = "nothing was required; --constraint demographic_parity:5% requires something"


def facts(report: Report) -> Iterator[Fact]:
    """What is known of a fit, in the order of weight."""
    labels = set()
    for line in first_lines(report):
        label = line.label.lower()
        labels.add(label)
        if label == "fairness":
            for paragraph in line.paragraphs:
                yield from _constraint(paragraph, constant_words(report))
            continue
        for at, part in enumerate(part for paragraph in line.paragraphs for part in paragraph):
            words = f"not measured; {HELD_OUT}" if part.words == ERROR_NOT_KNOWN else _words(part)
            yield Fact(label if not at or label == "warning" else "", words, _verdicts(part))
    if report.method is not None and "other gaps" not in labels and not report.tables:
        yield Fact("other gaps", f"not measured; {HELD_OUT}")


def _constraint(paragraph: Sequence[Clause], constant: str | None) -> Iterator[Fact]:
    """What is required and its verdicts, then what was seen, each on a line. Of a model that is
    `constant` that comes first, and no verdict is painted."""
    head, *seen = paragraph
    if head.words == NOTHING_REQUIRED:
        yield Fact("fairness", REQUIRE)
        return
    # a certificate stands first of what is known about people outside the table
    told = {part.words.partition(" ")[0]: part.verdict for part in reversed(seen) if part.verdict}
    words, verdicts = in_short(told.get("Training"), told.get("Held-out"), told.get("The"))
    required = head.words.removeprefix("Required: ").removesuffix(".")
    if constant is not None:
        words, verdicts, seen = f"{constant}; {words}", (), seen[1:]
    yield Fact("fairness", f"{words}: {required}", verdicts)
    for part in seen:
        if part.words != NOT_HELD_OUT:
            yield Fact("", _words(part), _verdicts(part))


def in_short(
    training: str | None, held_out: str | None, people: str | None = None
) -> tuple[str, tuple[str, ...]]:
    """Two verdicts as words, and those among the words. `people`: about those that the training
    rows were drawn from, which stands first where nobody was held out.

    >>> in_short("met", "met"), in_short("met", "not met")
    (('met', ('met',)), ('met in training, not met on held-out rows', ('met', 'not met')))
    >>> in_short("met", None, "cannot be told")[0], in_short("met", None, "met")[0]
    ('cannot be told for people like those in training, met on the training rows', 'met')
    >>> in_short("met", None)[0], in_short(None, None)[0], in_short(None, None, "met")[0]
    ('met in training', 'no verdict', 'met')
    """
    if training is None and held_out is None and people is None:
        return "no verdict", ()
    if held_out is None and people is not None:
        if training is None or people == training:
            return people, (people,)
        return f"{people} for people like those in training, {training} on the training rows", (
            people,
            str(training),
        )
    if training == held_out:
        return str(training), (str(training),)
    told = [(training, "in training"), (held_out, "on held-out rows")]
    known = [(word, where) for word, where in told if word is not None]
    return ", ".join(f"{word} {where}" for word, where in known), tuple(word for word, _ in known)


def _words(part: Clause) -> str:
    return str(part).removesuffix(".")


def _verdicts(part: Clause) -> tuple[str, ...]:
    return () if part.verdict is None else (part.verdict,)
