"""Lower bounds of whole-mechanism audits as a share of the claim, and the pairs of runs after which
planted bugs are found.

    python benchmarks/audit_power.py [--pairs 300] [--epsilon 1.0] [--power] [--only game,fermi]
        [--relations replace-one,sensitive] [--catch]

One line an estimator and adjacency relation: the claim is the plan's own curve. With `--power`
planted bugs are run beside. With `--catch` each bug is attacked by itself instead, until it is
refuted. Seconds are of the processor.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import fairveil as fv
from fairveil.audit.corners import pairs_of
from fairveil.audit.running import PILOT, Attack, Seeds
from fairveil.audit.targets import FitTarget
from fairveil.errors import FairveilError
from fairveil.facts import Boolean, Category, Number, Schema
from fairveil.privacy import Promise

COLUMNS: dict[str, Any] = {
    "age": Number(17, 90),
    "score": Number(0, 10),
    "job": Category(("a", "b", "c")),
    "sex": Category(("f", "m")),
}
SCHEMA = Schema(COLUMNS | {"hired": Boolean()}, target="hired", sensitive=("sex",), rows=1_000)
WAGES = Schema(COLUMNS | {"wage": Number(0, 100)}, target="wage", sensitive=("sex",), rows=1_000)
RELATIONS: dict[str, dict[str, Any]] = {
    "add-remove": {},
    "replace-one": {"protects": "records:replace-one"},
    "sensitive": {"protects": "sensitive_features"},
}
PARITY = "demographic_parity:0.1"


def mechanisms() -> list[tuple[str, str, Any]]:
    """Estimators by name and relation: short searches, so that many fit into minutes."""
    short: dict[str, Any] = {"solver": fv.PrimalDual(rounds=20)}
    found: list[tuple[str, str, Any]] = []
    for relation, more in RELATIONS.items():
        named = [
            ("rate-constrained", fv.FairClassifier(PARITY, **short, **more)),
            ("fermi", fv.FairClassifier(solver=fv.Fermi(), **short, **more)),
            ("game", fv.FairClassifier(PARITY, solver=fv.OracleGame(), **more)),
            ("post-processing", fv.FairPostProcessor(constraints="equalized_odds:0.1", **more)),
            ("group-objective", fv.FairClassifier(solver=fv.GroupObjective(), **more)),
            (
                "group-objective (largest)",
                fv.FairClassifier(objective="largest_group_loss", **more),
            ),
            ("group-objective regression", fv.FairRegressor(**more)),
            (
                "group-objective regression (largest)",
                fv.FairRegressor(objective="largest_group_loss", **more),
            ),
            ("tailored", fv.FairClassifier(solver=fv.Tailored(), **more)),
            ("tailored regression", fv.FairRegressor(solver=fv.Tailored(), **more)),
        ]
        found += [(name, relation, estimator) for name, estimator in named]
    sampled = fv.FairClassifier(PARITY, solver=fv.PrimalDual(sampling_rate=0.2, rounds=20))
    return [*found, ("rate-constrained, sampled", "add-remove", sampled)]


def caught(estimator: Any, pairs: int) -> list[str]:
    """A line a bug: after how many pairs it is refuted, and after how long, pilot and all."""
    facts = estimator.get_params()
    promise = Promise(*(facts[name] for name in ("epsilon", "delta", "protects")))
    tables = pairs_of(facts["schema"], promise.protects, promise.neighbours)
    made = [FitTarget(estimator, facts["schema"], pair, 0) for pair in tables]
    target = max(made, key=lambda one: one.distance)
    lines = []
    for bug in target.bugs:
        start = time.process_time()
        settings: dict[str, Any] = {"delta": promise.delta, "risk": 0.05, "planned": pairs}
        attack = Attack(target, Seeds(0), target.claim, **settings, bug=bug).fix(PILOT)
        attack.go_on(pairs)
        seconds = time.process_time() - start
        verdict = "refuted" if attack.refuted_by else "kept"
        lines.append(
            f"    {bug.name:26} {verdict:8} {attack.trials:4} pairs after {PILOT} of a pilot, "
            f"{seconds:6.1f} s"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=300)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--only", default="", help="estimators of these names, with commas")
    parser.add_argument("--relations", default=",".join(RELATIONS), help="these, with commas")
    parser.add_argument("--power", action="store_true")
    parser.add_argument("--catch", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print(
        f"{given.pairs} pairs of runs, epsilon {given.epsilon:g}; share of the claim that is "
        f"shown, at 95 % confidence"
    )
    only, relations = given.only.split(","), given.relations.split(",")
    for name, relation, estimator in mechanisms():
        if relation not in relations or (given.only and name not in only):
            continue
        estimator.set_params(
            epsilon=given.epsilon, schema=WAGES if "regression" in name else SCHEMA
        )
        if given.catch:
            print(f"{name:36} {relation:12}", *caught(estimator, given.pairs), sep="\n", flush=True)
            continue
        start = time.process_time()
        try:
            found = fv.audit.run(estimator, trials=given.pairs, power=given.power, progress=False)
        except FairveilError as error:
            print(f"{name:36} {relation:12} refused: {str(error)[:120]}", flush=True)
            continue
        seconds = time.process_time() - start
        print(
            f"{name:36} {relation:12} share {100 * found.share:4.0f} %  pair allows "
            f"{'?' if found.possible is None else f'{100 * found.possible:.0f} %':5} "
            f"{'REFUTED' if found.refuted else 'kept':8} {found.trials:4} pairs {seconds:5.0f} s",
            flush=True,
        )
        for one in found.planted:
            print(
                f"    {one.name:26} {'found' if one.found else 'not found':10} in {one.trials:4} "
                f"pairs, power {one.power:.2f}"
            )


if __name__ == "__main__":
    main()
