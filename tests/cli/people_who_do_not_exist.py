"""Small tables of people who do not exist, and how a command ended."""

from __future__ import annotations

import csv
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def refusal(self) -> str:
        """What stands on standard error, without notes that were given before."""
        lines = self.err.splitlines(keepends=True)
        return "".join(line for line in lines if not line.startswith("fairveil: note: "))


Command = Callable[..., Done]


def applicants(count: int, seed: int) -> list[list[object]]:
    """age, score, city, sex, hired: men are hired from lower scores on."""
    draw = random.Random(seed)
    rows: list[list[object]] = []
    for _ in range(count):
        sex = draw.choice(["female", "male"])
        score = round(min(max(draw.gauss(50, 15), 0), 100), 1)
        hired = score + (10 if sex == "male" else 0) + draw.gauss(0, 8) > 55
        rows.append([draw.randint(18, 70), score, draw.choice("ab"), sex, "yes" if hired else "no"])
    return rows


PYTHONISM = re.compile(
    r"""[a-z]=[A-Z"'(\[]|\bPass |\bNone\b|\bTrue\b|\bFalse\b|\w\(|Traceback|(?<!--shares )(?<![,\w])[a-z_]+=\w|\[['"]"""
)
"""What no error of the command line may hold."""

HEADER = ["age", "score", "city", "sex", "hired"]


def write_csv(path: Path, rows: list[list[object]], header: list[str] = HEADER) -> Path:
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path
