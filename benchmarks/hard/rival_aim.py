"""AIM's synthetic rows, by the implementation of smartnoise-synth. Run by
`hard_cases.py --aim PYTHON` in a Python of its own:

    PYTHON rival_aim.py TABLE.npz OUT.npz EPSILON DELTA SEED [--size MB] [--degree K] [--rounds T]
    [--iterations I]

It needs smartnoise-synth 1.0.8, smartnoise-sql 1.0.10 and mbi 1.1.0 (with jax), whose requirements
contradict ours:

    python -m venv aim
    aim/bin/pip install 'mbi<2' pandas Faker disjoint-set sqlalchemy graphviz opendp pyyaml
    antlr4-python3-runtime==4.9.3 aim/bin/pip install --no-deps smartnoise-synth smartnoise-sql

TABLE.npz: `table`, codes (rows, columns), `names`, and `sizes`, how many values each may have. The
defaults are the authors': a model of at most 80 MB, all pairs of columns of at most 10,000 cells,
16 rounds a column, 1,000 iterations a round. The number of synthetic rows is the exact number of
real ones, which the rival's guarantee does not cover.
"""

import argparse
import json
import resource
import time
from functools import partial

import numpy as np
import pandas as pd
from mbi import Dataset, Domain, MarkovRandomField, estimation, junction_tree, marginal_oracles
from snsynth.aim import AIMSynthesizer
from snsynth.utils import cdp_rho


def main() -> None:
    """Read, fit, write."""
    asked = _options()
    with np.load(asked.table) as given:
        table, sizes, columns = given["table"], given["sizes"].tolist(), given["names"]
    np.random.seed(asked.seed)  # noqa: NPY002  # the package draws from the global generator
    names = [f"c{j}" for j in range(len(sizes))]
    rows = Dataset(pd.DataFrame(table, columns=names), Domain(names, sizes))
    if asked.iterations:  # the package has no option for it
        estimation.mirror_descent = _fewer(estimation.mirror_descent, asked.iterations)
    start = time.perf_counter()
    rival = AIMSynthesizer(
        asked.epsilon,
        asked.delta,
        max_model_size=asked.size,
        degree=asked.degree,
        rounds=asked.rounds,
        verbose=True,
    )
    rival.rho = cdp_rho(asked.epsilon, asked.delta)
    rival.AIM(rows, rival.get_workload(rows, asked.degree, rival.max_cells))
    made = _chordal(rival.synthesizer).synthetic_data(rows=len(table)).df[names].to_numpy()
    said = {
        "aim_seconds": round(time.perf_counter() - start, 1),
        "aim_mebibytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "aim_options": f"{asked.size:g} MB, degree {asked.degree}, rounds "
        f"{asked.rounds or 16 * len(names)}",
    }
    np.savez_compressed(
        asked.out, table=made.astype(np.int64), names=columns, said=json.dumps(said)
    )


def _chordal(model):
    """The same model on the nodes of its junction tree.

    mbi 1.1.0 draws a column given those before it that it shares a clique with. On the cliques as
    they were measured that leaves out edges, and pairs that were measured come out up to a third
    wrong.
    """
    tree, _ = junction_tree.make_junction_tree(
        model.domain, [set(clique) for clique in model.cliques]
    )
    potentials = model.potentials.expand(list(tree.nodes))
    marginals = marginal_oracles.message_passing_stable(potentials, model.total)
    return MarkovRandomField(potentials=potentials, marginals=marginals, total=model.total)


def _fewer(descend, iterations):
    return lambda *given, **options: partial(descend, *given)(**{**options, "iters": iterations})


def _options() -> argparse.Namespace:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("table")
    options.add_argument("out")
    options.add_argument("epsilon", type=float)
    options.add_argument("delta", type=float)
    options.add_argument("seed", type=int)
    options.add_argument("--size", type=float, default=80.0, help="of the model, in megabytes")
    options.add_argument("--degree", type=int, default=2, help="of the marginals of the workload")
    options.add_argument("--rounds", type=int, help="default: 16 a column")
    options.add_argument("--iterations", type=int, help="of mirror descent; default: 1,000")
    return options.parse_args()


if __name__ == "__main__":
    main()
