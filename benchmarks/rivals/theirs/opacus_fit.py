"""A logistic regression by opacus: Poisson batches of 256, ten passes, clip 1, step 0.5. Needs the
extra `torch` and opacus.

Its own accountant chooses the noise; the epsilon of the table is that of this library's accountant
for its history. The number of rows is in the sampling rate, and taken to be public.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import torch
from opacus import PrivacyEngine

from fairveil.privacy.importing import from_opacus


def main() -> None:
    """Read, fit, write."""
    job = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    with np.load(job["rows"]) as rows:
        train, test, y = rows["train_X"], rows["test_X"], rows["train_y"]
    warnings.simplefilter("ignore")
    torch.manual_seed(job["seed"])
    torch.set_num_threads(1)
    X, wanted = torch.tensor(train, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)
    module = torch.nn.Linear(X.shape[1], 1)
    delta = 0.5 / len(y) ** 2
    batches = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(X, wanted), batch_size=min(256, len(y))
    )
    engine = PrivacyEngine()
    module, steps, batches = engine.make_private_with_epsilon(
        module=module,
        optimizer=torch.optim.SGD(module.parameters(), lr=0.5),
        data_loader=batches,
        target_epsilon=job["epsilon"] / 2,
        target_delta=delta,
        epochs=10,
        max_grad_norm=1.0,
    )
    loss = torch.nn.BCEWithLogitsLoss()
    for _ in range(10):
        for some, labels in batches:
            steps.zero_grad()
            if len(some):
                loss(module(some)[:, 0], labels).backward()
                steps.step()
    spent = (
        from_opacus(engine, sampling="poisson", neighbours="add-remove", rows_per_person=1)
        .price(delta)
        .epsilon
    )
    with torch.no_grad():
        scores = [
            module(torch.tensor(part, dtype=torch.float32))[:, 0].double().numpy()
            for part in (train, test)
        ]
    said = {"claimed": engine.get_epsilon(delta), "proved": spent}
    np.savez(job["out"], train_scores=scores[0], test_scores=scores[1], said=json.dumps(said))


if __name__ == "__main__":
    main()
