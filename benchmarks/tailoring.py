"""Budgets by group: the published comparison with corrected noise, and arms that differ in nothing
but their shares.

    python benchmarks/tailoring.py --table 1 --markdown
    python benchmarks/tailoring.py --table 4 --markdown
    python benchmarks/tailoring.py --figure two --markdown --plot two.svg
    python benchmarks/tailoring.py --figure bound --markdown
    python benchmarks/tailoring.py --figure many --markdown --plot many.svg
    python benchmarks/tailoring.py --figure relations --markdown
    python benchmarks/tailoring.py --data-set law_school --markdown

Prints JSON, a line a setting; `--out` writes it to a file, too, and `--reuse` takes from that file
what it has. Tables 2 and 3 are in `tailoring_speed.py`.

Synthetic rows: x is uniform on [-1, 1] and y = b_k x + N(0, s_k^2) in group k; y is public to [-H,
H], H the largest |b_k| + 4 s_k. The paper does not say what x is. MSPE is a group's mean squared
prediction error on its *distribution*, in closed form: held out, without noise of its own. rho-zCDP
is mu = sqrt(2 rho) of a Gaussian, whose epsilon at delta 1e-6 is asked for. Slopes (10, -10), (-10,
-1) and (1, -1) of the paper are mirror images of those here, and equal in distribution.

Arms. "pooled": one sum of all rows and their mean error, the whole budget; what the paper compares
with. "tailored": the mean of the groups' errors, standard errors' shares that add up to the budget;
the paper's, corrected. All others minimise what "tailored" does: equal shares of the same total;
equal shares, and "least-noise", at the guarantee that the worst off person of "tailored" has, as if
its shares had been public (which flatters "tailored"); and "least-noise" of the same total.
Methods: "descent" and "moments" of the estimator, at their defaults; "published" is a descent of 50
steps whose gradients are clipped to 2 and whose coefficients are kept in the box [-5, 5], in every
arm (in units of x; the intercept is ours).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import fairveil as fv
from fairveil import data
from fairveil.errors import ConstraintNotMet
from fairveil.estimators.settings.setting import built
from fairveil.facts import Category, Column, Number, Schema
from fairveil.figures import Curve, CurvesFigure, Measure, svg_curves
from fairveil.privacy.accounting.routes import gaussian_epsilon

Floats = npt.NDArray[np.float64]
DELTA = 1e-6
CLIP, BOX = 2.0, 5.0  # the paper's, in units of x and y; its gradients are 2 x (x'c - y)
ROUNDS = 50  # the paper does not say how many
SPREAD = 3.0**-0.5  # of x
# of the squared budget of "tailored": what groups share
LAST = {"moments": 0.8, "descent": 0.7, "published": 0.7}
CODES = (0, 1)
PER_CENT = 0.02


@dataclass(frozen=True)
class Law:
    """Groups of rows. `second`: None, or the share of a second column's small group, and its
    slope's distance."""

    sizes: tuple[int, ...]
    slopes: tuple[float, ...]
    noises: tuple[float, ...]
    second: tuple[float, float] | None = None

    @property
    def half(self) -> float:
        """y's public bound."""
        most = max(abs(b) + 4.0 * s for b, s in zip(self.slopes, self.noises, strict=True))
        return float(math.ceil(most + (abs(self.second[1]) if self.second else 0.0)))

    @property
    def schema(self) -> Schema:
        """Public."""
        groups = {"g": Category(tuple(range(len(self.sizes))))}
        if self.second is not None:
            groups["h"] = Category(CODES)
        columns: dict[str, Column] = {
            "x": Number(-1, 1),
            **groups,
            "y": Number(-self.half, self.half),
        }
        return Schema(columns, target="y", sensitive=tuple(groups))

    def rows(self, seed: int, precision: str = "float64") -> Any:
        """Drawn anew."""
        rng = np.random.default_rng(seed)
        g = np.repeat(np.arange(len(self.sizes), dtype=np.int8), self.sizes)
        slope = np.array(self.slopes)[g]
        x, columns = rng.uniform(-1.0, 1.0, len(g)), {"g": g}
        if self.second is not None:
            columns["h"] = (rng.uniform(size=len(g)) < self.second[0]).astype(np.int8)
            slope = slope + self.second[1] * columns["h"]
        y = slope * x + np.array(self.noises)[g] * rng.normal(size=len(g))
        return data.encode({"x": x, "y": y} | columns, self.schema, precision=precision)

    def mspe(self, c: float, intercept: float) -> Floats:
        """Of each group; of a second column's, too."""
        share, far = self.second or (0.0, 0.0)
        each = [
            [(c - b - h * far) ** 2 / 3.0 + intercept**2 + s**2 for h in CODES]
            for b, s in zip(self.slopes, self.noises, strict=True)
        ]
        of_both = np.array(each)
        first = of_both @ np.array([1.0 - share, share])
        if self.second is None:
            return np.asarray(first)
        sizes = np.array(self.sizes) / sum(self.sizes)
        return np.concatenate([first, sizes @ of_both])

    @property
    def least(self) -> float:
        """The least mean of the groups' errors that a line has."""
        grid = [float(self.mspe(c, 0.0).mean()) for c in (-1.0, 0.0, 1.0)]
        bend = (grid[0] + grid[2]) / 2.0 - grid[1]
        best = -(grid[2] - grid[0]) / 4.0 / bend
        return float(self.mspe(best, 0.0).mean())

    @property
    def smallest(self) -> int:
        """Its place."""
        return int(np.argmin(self.sizes))


@dataclass(frozen=True)
class Arm:
    """One way to spend a budget. `at`: "total", or "worst": the guarantee of the worst off person
    of "tailored"."""

    name: str
    at: str
    options: Mapping[str, Any] = field(default_factory=dict)


POOLED = Arm("pooled", "total", {"allocation": "least-noise", "objective": "people"})
TAILORED = Arm("tailored", "total", {"allocation": "standard-error", "spend": "total"})
EQUAL_TOTAL = Arm("equal, same total", "total", {"allocation": "equal", "spend": "total"})
EQUAL_WORST = Arm("equal, same worst person", "worst", {"allocation": "equal"})
LEAST_WORST = Arm("least-noise, same worst person", "worst", {"allocation": "least-noise"})
LEAST_TOTAL = Arm(
    "least-noise, same total", "total", {"allocation": "least-noise", "spend": "total"}
)
ARMS = (TAILORED, POOLED, EQUAL_TOTAL, EQUAL_WORST, LEAST_WORST, LEAST_TOTAL)
PERSONS = tuple(
    Arm(rule, "total", {"allocation": rule})
    for rule in ("equal", "standard-error", "size", "least-noise")
)


def options_of(method: str, half: float, arm: Arm) -> dict[str, Any]:
    """Of the estimator: "published" is descent with the paper's clip and box, in units of x over
    its deviation and of y / H."""
    if method != "published":
        return {"method": method, "delta": DELTA, **arm.options}
    published = {
        "clip": CLIP / 2.0 / half / SPREAD,
        "radius": BOX * SPREAD / half,
        "region": "box",
        "rounds": ROUNDS,
    }
    return {"method": "descent", "delta": DELTA, **published, **arm.options}


def epsilon_of(rho: float) -> float:
    """Of rho-zCDP, as a Gaussian has it."""
    return gaussian_epsilon(math.sqrt(2.0 * rho), DELTA)


def worst_rho(rho: float, method: str, shares: Sequence[float]) -> float:
    """What the worst off person of "tailored" spends, shares taken as public."""
    return rho * (1.0 - LAST[method] + LAST[method] * max(shares))


def seed_of(*setting: Any) -> int:
    """A seed for each run of each setting."""
    return zlib.crc32(repr(setting).encode())


@dataclass(frozen=True)
class Setting:
    """One distribution, budget and method, and its arms."""

    name: str
    law: Law
    rho: float
    method: str
    arms: tuple[Arm, ...]
    also: Mapping[str, Any] = field(default_factory=dict)

    def fitted(self, arm: Arm, rows: Any, rho: float, seed: int) -> Any:
        """One fit."""
        model = built(
            fv.TailoredRegressor,
            epsilon=epsilon_of(rho),
            random_state=seed,
            **options_of(self.method, self.law.half, arm),
            **self.also,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConstraintNotMet)
            return model.fit(rows)

    def run(self, seed: int) -> dict[str, dict[str, Any]]:
        """Every arm, on the same rows."""
        rows, out = self.law.rows(seed), {}
        worst = self.rho
        for arm in self.arms:
            model = self.fitted(arm, rows, self.rho if arm.at == "total" else worst, seed)
            if arm.name == "tailored":
                worst = worst_rho(self.rho, self.method, model.tailoring_.shares)
            loss = self.law.mspe(float(model.coef_[0]), float(model.intercept_))
            out[arm.name] = {
                "smallest": float(loss[self.law.smallest]),
                "largest": float(loss[int(np.argmax(self.law.sizes))]),
                "groups": loss.tolist(),
                "excess": float(loss.mean() - self.law.least),
                "coefficient": float(model.coef_[0]),
                "no information": "no information" in model.tailoring_.why,
                "share": float(model.tailoring_.shares[self.law.smallest]),
                "epsilon": float(max(model.tailoring_.epsilons)),
            }
        return out

    def measured(self, least: int, most: int) -> dict[str, Any]:
        """Runs until standard errors are below 2 % of the means, or there are `most`."""
        runs: list[dict[str, dict[str, Any]]] = []
        while len(runs) < most:
            runs.append(self.run(seed_of(self.name, self.law, self.rho, self.method, len(runs))))
            if len(runs) >= least and max(self._error(runs)) < PER_CENT:
                break
        arms = {arm.name: summary([one[arm.name] for one in runs]) for arm in self.arms}
        told = {
            "sizes": self.law.sizes,
            "slopes": self.law.slopes,
            "noises": self.law.noises,
            "half": self.law.half,
        }
        where = {
            "setting": self.name,
            **told,
            "rho": self.rho,
            "epsilon": epsilon_of(self.rho),
            "method": self.method,
        }
        return where | {
            "least": self.law.least,
            "runs": len(runs),
            "largest relative error": max(self._error(runs)),
            "arms": arms,
        }

    def _error(self, runs: Sequence[Mapping[str, Mapping[str, Any]]]) -> list[float]:
        values = [
            [float(one[arm.name][of]) for one in runs]
            for arm in self.arms
            for of in ("smallest", "largest")
        ]
        return [
            float(np.std(some, ddof=1) / math.sqrt(len(some)) / np.mean(some)) for some in values
        ]


def summary(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Means, and standard errors of what is plotted."""
    out: dict[str, Any] = {
        key: np.mean([one[key] for one in runs], axis=0).tolist() for key in runs[0]
    }
    for key in ("smallest", "largest", "excess"):
        out[f"{key}, error"] = float(
            np.std([one[key] for one in runs], ddof=1) / math.sqrt(len(runs))
        )
    return out


# -- what is measured ------------------------------------------------------------------------------

FIVE = Law((10_000, 500, 500, 500, 500), (-3.0, 4.7, 5.2, 5.25, 4.6), (1.0,) * 5)
TWO_SLOPES = {"(-10, 10)": (-10.0, 10.0), "(10, 1)": (10.0, 1.0), "(-1, 1)": (-1.0, 1.0)}
RATIOS = (5, 20, 50, 100)
RHOS = (0.005, 0.05, 0.5, 5.0, 50.0)
GROUPS = (2, 5, 10, 15, 20)
RELATIONS: dict[str, dict[str, Any]] = {
    "add-remove": {},
    "replace-one": {"neighbours": "replace-one"},
    "sensitive features": {"protects": "sensitive_features"},
    "overlapping": {"groups": "marginal"},
}


def table_1(methods: Sequence[str], _: Sequence[int]) -> Iterator[Setting]:
    """Five groups, 20 to 1."""
    for method in methods:
        for rho in (2.0, 4.5, 8.0):
            yield Setting("table 1", FIVE, rho, method, ARMS)


def figure_two(methods: Sequence[str], ratios: Sequence[int]) -> Iterator[Setting]:
    """Two groups: slopes, ratios, and for the flattest pair noises."""
    for method in methods:
        cases = [(slopes, ratio, 1.0) for slopes in TWO_SLOPES.values() for ratio in ratios]
        cases += [(TWO_SLOPES["(-1, 1)"], 20, noise) for noise in (0.3, 3.0)]
        for slopes, ratio, noise in cases:
            for rho in RHOS:
                yield Setting(
                    "two groups",
                    Law((10_000, 10_000 // ratio), slopes, (noise,) * 2),
                    rho,
                    method,
                    ARMS[:5],
                )


def figure_bound(methods: Sequence[str], _: Sequence[int]) -> Iterator[Setting]:
    """Two groups of 10,000 and 500 whose errors are bounded by 1.1 times the least largest one."""
    for method in methods:
        for slopes in TWO_SLOPES.values():
            law = Law((10_000, 500), slopes, (1.0, 1.0))
            bound = 1.1 * float(law.mspe(sum(slopes) / 2.0, 0.0)[0])
            for rho in (0.05, 0.5, 5.0):
                yield Setting("bound", law, rho, method, ARMS[:4], {"group_loss_bound": bound})


def figure_many(methods: Sequence[str], _: Sequence[int]) -> Iterator[Setting]:
    """A large group, and others of one small size."""
    for method in methods:
        for count in GROUPS:
            for large, small in ((10_000, 500), (5_000, 100)):
                slopes = (-3.0, *np.linspace(4.6, 5.2, count - 1).tolist())
                law = Law((large, *[small] * (count - 1)), slopes, (1.0,) * count)
                for rho in (0.05, 0.5, 5.0):
                    yield Setting(f"{count} groups", law, rho, method, ARMS)


def figure_relations(methods: Sequence[str], _: Sequence[int]) -> Iterator[Setting]:
    """The same promise to the worst off person, under each relation and for groups that overlap."""
    for method in methods:
        for name, also in RELATIONS.items():
            for noises in ((1.0, 1.0), (0.3, 3.0)):
                for ratio in (1, 20, 100):
                    second = (0.1, 1.0) if name == "overlapping" else None
                    law = Law((10_000, 10_000 // ratio), (-1.0, 1.0), noises, second)
                    for rho in (0.005, 0.05, 0.5):
                        yield Setting(name, law, rho, method, PERSONS, also)


def table_4(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Groups of one size, of variances 10 and 10,000: released standard errors, and shares."""
    for size in (1_000, 50_000, 9_000_000):
        law = Law((size, size), (1.0, 1.0), (math.sqrt(10.0), 100.0))
        for rho in (2.0, 8.0) if size < 1_000_000 else (2.0,):
            yield shares_of("table 4", law, rho, asked.least if size < 1_000_000 else 1)


def shares_of(name: str, law: Law, rho: float, runs: int) -> dict[str, Any]:
    """Stage one of the published method, as released, in units of y, and what shares come of it."""
    errors, shares, lost = [], [], 0
    for run in range(runs):
        seed = seed_of(name, law, rho, run)
        rows = law.rows(seed, precision="float32")
        model = Setting(name, law, rho, "moments", ()).fitted(TAILORED, rows, rho, seed)
        told = model.tailoring_
        lost += "no information" in told.why
        errors.append(np.array(told.errors) * law.half)
        shares.append(told.shares)
        counts = told.counts
    s = np.nanmean(errors, axis=0)
    return {
        "setting": name,
        "sizes": law.sizes,
        "noises": law.noises,
        "rho": rho,
        "runs": runs,
        "no information": lost,
        "s": s.tolist(),
        "share": np.mean(shares, axis=0).tolist(),
        "s / sum s": (s / s.sum()).tolist(),
        "s / sqrt(n)": (s / np.sqrt(counts)).tolist(),
        "share by s^2 / n": (s**2 / counts / (s**2 / counts).sum()).tolist(),
    }


# -- real rows -------------------------------------------------------------------------------------

SETS: dict[str, dict[str, Any]] = {
    "law_school": {
        "target": "zgpa",
        "sensitive": "race",
        "features": ("lsat", "ugpa", "zfygpa", "fulltime", "fam_inc", "male", "tier"),
        "unit": 1.0,
    },
    "credit": {"target": "LIMIT_BAL", "sensitive": "SEX", "features": None, "unit": 1e5},
}


def real(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """15 random splits, a quarter held out, every arm on each."""
    what = SETS[asked.data_set]
    found = data.get(
        asked.data_set, asked.data, target=what["target"], sensitive=(what["sensitive"],)
    )
    schema, names = found.schema, what["features"]
    kept = [
        name
        for name in schema.columns
        if names is None or name in (*names, what["target"], what["sensitive"])
    ]
    schema = Schema(
        {name: schema.columns[name] for name in kept},
        target=what["target"],
        sensitive=(what["sensitive"],),
        rows=schema.rows,
    )
    table = {name: np.asarray(found.table[name]) for name in kept}
    y, a = np.asarray(table[what["target"]], np.float64) / what["unit"], table[what["sensitive"]]
    keys, counts = np.unique(a, return_counts=True)
    low, high = (keys[order] for order in (np.argmin(counts), np.argmax(counts)))
    for method in asked.methods:
        for rho in asked.rhos:
            runs: dict[str, list[dict[str, Any]]] = {arm.name: [] for arm in ARMS}
            for split in range(asked.splits):
                order = np.random.default_rng(split).permutation(len(y))
                cut = len(y) // 4
                test, train = order[:cut], order[cut:]
                rows = data.encode({name: column[train] for name, column in table.items()}, schema)
                held = {name: column[test] for name, column in table.items()}
                worst = rho
                for arm in ARMS:
                    epsilon = epsilon_of(rho if arm.at == "total" else worst)
                    options = options_of(method, 1.0, arm)
                    model = built(
                        fv.TailoredRegressor, epsilon=epsilon, random_state=split, **options
                    ).fit(rows)
                    if arm is TAILORED:
                        worst = worst_rho(rho, method, model.tailoring_.shares)
                    squares = (np.asarray(model.predict(held)) / what["unit"] - y[test]) ** 2
                    runs[arm.name].append(
                        {
                            "smallest": float(squares[a[test] == low].mean()),
                            "largest": float(squares[a[test] == high].mean()),
                            "excess": float(squares.mean()),
                            "share": float(model.tailoring_.shares[model.groups_.index(low)]),
                        }
                    )
            yield {
                "setting": asked.data_set,
                "rows": len(y),
                "groups": {str(key): int(count) for key, count in zip(keys, counts, strict=True)},
                "rho": rho,
                "epsilon": epsilon_of(rho),
                "method": method,
                "runs": asked.splits,
                "variance": {str(key): float(y[a == key].var()) for key in keys},
                "arms": {name: summary(some) for name, some in runs.items()},
            }


# -- what is printed -------------------------------------------------------------------------------


def markdown(lines: Sequence[Mapping[str, Any]]) -> str:
    """A row a setting: the smallest group's MSPE @ the largest's."""
    if "arms" not in lines[0]:
        names = ("s", "share", "s / sum s", "s / sqrt(n)", "share by s^2 / n")
        rows = [["sizes", "rho", "no information", *names], ["---"] * (3 + len(names))]
        for line in lines:
            cells = [", ".join(f"{value:.4g}" for value in line[name]) for name in names]
            rows.append(
                [
                    " : ".join(f"{n:,}" for n in line["sizes"]),
                    f"{line['rho']:g}",
                    f"{line['no information']} of {line['runs']}",
                    *cells,
                ]
            )
        return "\n".join("| " + " | ".join(row) + " |" for row in rows)
    arms = list(lines[0]["arms"])
    rows = [["setting", "method", "rho", *arms, "share", "runs"], ["---"] * (5 + len(arms))]
    for line in lines:
        told = line["arms"]
        shown = [f"{told[arm]['smallest']:.3g} @ {told[arm]['largest']:.3g}" for arm in arms]
        share = told.get("tailored", told[arms[0]])["share"]
        rows.append(
            [
                of_setting(line),
                line["method"],
                f"{line['rho']:g}",
                *shown,
                f"{share:.3f}",
                str(line["runs"]),
            ]
        )
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def of_sizes(line: Mapping[str, Any]) -> str:
    """The largest, and the smallest."""
    return f"{max(line['sizes']):,} : {min(line['sizes']):,}"


def of_setting(line: Mapping[str, Any]) -> str:
    """In words."""
    if "slopes" not in line:
        return str(line["setting"])
    few = len(line["sizes"]) == 2
    sizes = of_sizes(line)
    slopes = ", ".join(f"{b:g}" for b in line["slopes"]) if few else ""
    noises = (
        "" if set(line["noises"]) == {1.0} else "; s " + ", ".join(f"{s:g}" for s in line["noises"])
    )
    return f"{line['setting']}, {sizes}" + (f"; slopes {slopes}" if slopes else "") + noises


def plot(lines: Sequence[Mapping[str, Any]], figure: str) -> str:
    """The smallest group's MSPE by arm: over rho, of the first slopes, largest ratio; or over
    groups, at the least rho."""
    first = [line for line in lines if line["method"] == lines[0]["method"]]
    if figure == "many":
        least = min(line["rho"] for line in first)
        shown = [
            line
            for line in first
            if line["rho"] == least and line["sizes"][-1] == min(one["sizes"][-1] for one in first)
        ]
        about = f"{of_sizes(shown[0])}, rho {least:g}"
    else:
        same = [
            line
            for line in first
            if line["slopes"] == lines[0]["slopes"] and line["noises"] == lines[0]["noises"]
        ]
        shown = [
            line for line in same if line["sizes"][-1] == min(one["sizes"][-1] for one in same)
        ]
        about = f"{of_sizes(shown[0])}, slopes {', '.join(f'{b:g}' for b in shown[0]['slopes'])}"
    curves = []
    for arm in shown[0]["arms"]:
        told = [
            (line["rho"] if figure != "many" else len(line["sizes"]), line["arms"][arm])
            for line in shown
        ]
        points = tuple((float(at), one["smallest"]) for at, one in told)
        low, high = (
            tuple(one["smallest"] + sign * 2.0 * one["smallest, error"] for _, one in told)
            for sign in (-1, 1)
        )
        curves.append(Curve(arm, points, low, high))
    across = Measure("groups" if figure == "many" else "rho", "plain")
    title = f"The smallest group's squared prediction error ({shown[0]['method']}; {about})"
    drawn = CurvesFigure(
        title, across, Measure("MSPE", "plain"), tuple(curves), log_across=figure != "many"
    )
    return svg_curves(drawn, name="tailoring") + "\n"


def usual_folder() -> str | None:
    """Where the data are looked for first."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    return os.environ.get("FAIRVEIL_DATA") or (str(beside) if beside.is_dir() else None)


FIGURES = {
    "two": figure_two,
    "bound": figure_bound,
    "many": figure_many,
    "relations": figure_relations,
}


def lines_of(asked: argparse.Namespace, known: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Everything that was asked for."""
    if asked.data_set:
        yield from real(asked)
    elif asked.table == 4:
        yield from table_4(asked)
    else:
        settings = (table_1 if asked.table else FIGURES[asked.figure])(asked.methods, asked.ratios)
        for setting in settings:
            key = json.dumps(
                [
                    setting.name,
                    setting.law.sizes,
                    setting.law.slopes,
                    setting.law.noises,
                    setting.rho,
                    setting.method,
                ]
            )
            yield known.get(key) or setting.measured(asked.least, asked.most)


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = options.add_mutually_exclusive_group(required=True)
    what.add_argument("--table", type=int, choices=(1, 4))
    what.add_argument("--figure", choices=sorted(FIGURES))
    what.add_argument("--data-set", choices=sorted(SETS))
    options.add_argument(
        "--methods", nargs="+", choices=sorted(LAST), default=["descent", "moments"]
    )
    options.add_argument("--least", type=int, default=10, help="runs of a setting, at least")
    options.add_argument(
        "--most",
        type=int,
        default=100,
        help="and at most; they end when standard errors are below 2 %%",
    )
    options.add_argument(
        "--ratios", type=int, nargs="+", default=list(RATIOS), help="of two groups' sizes"
    )
    options.add_argument(
        "--rhos", type=float, nargs="+", default=[0.05, 0.5, 5.0], help="of a data set"
    )
    options.add_argument("--splits", type=int, default=15)
    options.add_argument("--data", default=usual_folder())
    options.add_argument("--out", type=Path)
    options.add_argument("--reuse", action="store_true")
    options.add_argument("--plot", type=Path)
    options.add_argument("--markdown", action="store_true", help="print tables instead of JSON")
    asked = options.parse_args()
    known = {}
    if asked.reuse and asked.out is not None and asked.out.exists():
        for line in map(json.loads, asked.out.read_text(encoding="utf-8").splitlines()):
            key = [
                line.get(name) for name in ("setting", "sizes", "slopes", "noises", "rho", "method")
            ]
            known[json.dumps(key)] = line
    if asked.out is not None:
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        asked.out.write_text("", encoding="utf-8")
    lines = []
    for line in lines_of(asked, known):
        lines.append(line)
        if asked.out is not None:
            with asked.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        if not asked.markdown:
            print(json.dumps(line), flush=True)
    if asked.markdown:
        print(markdown(lines))
    if asked.plot is not None:
        asked.plot.write_text(plot(lines, asked.figure), encoding="utf-8")


if __name__ == "__main__":
    main()
