"""A rule that gives each row a code, as plain values: a finished model's files, edges, and a table
of whole numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...curator.elsewhere import DescribedRule
from ...models.files import ARRAYS_FILE, MODEL_FILE, to_files
from .catalogue import cells_described
from .messages import Packing

DESCRIBED = ("model", "edges", "cells", "table")


def rule_described(rule: DescribedRule, packing: Packing) -> dict[str, Any]:
    """The rule, for a message."""
    model = None
    if rule.model is not None:
        files = to_files(rule.model)
        model = {
            "files": files[MODEL_FILE].decode(),
            "arrays": packing.put(np.frombuffer(files[ARRAYS_FILE], np.uint8)),
        }
    return {
        "model": model,
        "edges": None if rule.edges is None else packing.put(np.asarray(rule.edges, np.float64)),
        "cells": cells_described(rule.cells),
        "table": None if rule.table is None else packing.put(np.asarray(rule.table, np.int64)),
    }
