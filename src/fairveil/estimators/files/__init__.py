"""Fitted estimators on disk: a folder with the model, the statement and what the estimator needs to
predict. Never pickle.

`model.json` and `arrays.npz` are the model's own files (`models.load` reads them alone),
`statement.json` the privacy statement, `estimator.json` the parameters and what else was fitted,
with the SHA-256 of the other files. A base estimator of this library inside another is written
beside it, under names that begin with "base."; one of another library is not written, and handed
back to `load`. The checksums show damage, not authorship. This is the one sub-room that may import
its siblings' estimators. Each kind of estimator has an entry in `kinds`.
"""

from __future__ import annotations

from .folder import from_files, load, save, to_files

__all__ = ["from_files", "load", "save", "to_files"]
