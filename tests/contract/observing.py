"""Everything that anybody may see of a run, as texts by name: two runs are compared by them."""

from __future__ import annotations

import contextlib
import hashlib
import io
import logging
import math
import re
import tempfile
import types
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

import fairveil as fv

# What the caller passed in, and locks.
PASSED = {"schema", "ledger", "random_state", "unit", "_lock"}
METHODS = ("predict", "predict_proba", "decision_function")
DEEP, MANY = 14, 2000


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def shown(value: object) -> dict[str, str]:
    """The state of an object, private attributes, closures and all, to the bit."""
    out: dict[str, str] = {}
    _walk(value, "", out, (), 0)
    return out


def _walk(value: Any, path: str, out: dict[str, str], above: tuple[int, ...], depth: int) -> None:
    if depth > DEEP or id(value) in above:
        return
    inner: list[tuple[str, Any]] = []
    if isinstance(value, float) and math.isfinite(value):
        out[path] = value.hex()
    elif value is None or isinstance(value, str | bytes | bool | int | float | np.generic):
        out[path] = repr(value)
    elif isinstance(value, np.ndarray):
        if value.dtype == object:
            inner = [(f"[{i}]", one) for i, one in enumerate(value.ravel()[:MANY].tolist())]
        out[path] = f"{value.dtype}{value.shape}"
        out[path] += "" if inner else digest(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, types.FunctionType):
        out[path] = value.__qualname__
        inner = [(f"<{i}>", cell) for i, cell in enumerate(value.__closure__ or ())]
    elif isinstance(value, types.CellType):
        with contextlib.suppress(ValueError):
            inner = [("", value.cell_contents)]
    elif isinstance(value, types.MethodType):
        inner = [("<self>", value.__self__)]
    elif isinstance(value, type | types.BuiltinFunctionType | types.ModuleType):
        out[path] = value.__name__
    elif isinstance(value, Mapping):
        out[path] = repr([repr(key) for key in value])
        inner = [(f"[{key!r}]", one) for key, one in value.items()]
    elif isinstance(value, list | tuple):
        out[path] = f"{len(value)}"
        inner = [(f"[{i}]", one) for i, one in enumerate(value[:MANY])]
    elif isinstance(value, set | frozenset):
        out[path] = repr(sorted(map(repr, value)))
    elif scipy.sparse.issparse(value):
        inner = [("<sparse>", [value.tocsr().data, value.tocsr().indices, value.tocsr().indptr])]
    elif hasattr(value, "detach"):  # a tensor
        inner = [("<tensor>", value.detach().numpy())]
    else:
        out[path] = type(value).__qualname__
        names = [*getattr(value, "__dict__", ())]
        for kind in type(value).__mro__:
            slots = kind.__dict__.get("__slots__", ())
            names += [slots] if isinstance(slots, str) else slots
        inner = [
            (f".{name}", getattr(value, name))
            for name in names
            if name not in PASSED and not name.startswith("__") and hasattr(value, name)
        ]
    for name, one in inner:
        _walk(one, path + name, out, (*above, id(value)), depth + 1)


def files(folder: Path) -> dict[str, str]:
    """Every file below, by its bytes."""
    return {
        str(path.relative_to(folder)): digest(path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


class _Heard(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def observed(run: Callable[[], Any], X: Any = None, groups: Any = None) -> dict[str, str]:
    """A run's result or error, attributes, predictions, statement, reports, files, warnings,
    prints and log lines."""
    out, printed, heard = dict[str, str](), io.StringIO(), _Heard()
    result = None
    logging.getLogger().addHandler(heard)
    try:
        with (
            warnings.catch_warnings(record=True) as warned,
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
        ):
            warnings.simplefilter("always")
            try:
                result = run()
            except Exception as error:
                out["error"] = f"{type(error).__name__}: {error}"
    finally:
        logging.getLogger().removeHandler(heard)
    out["warnings"] = repr([(w.category.__name__, str(w.message)) for w in warned])
    out["printed"], out["logged"] = printed.getvalue(), repr(heard.lines)
    if result is None:
        return out
    out |= {f"state{name}": text for name, text in shown(result).items()}
    out["repr"] = repr(result)
    if hasattr(result, "_repr_html_"):
        numbered = re.sub(r"-id-\d+", "-id", result._repr_html_())  # each page's own
        out["notebook"] = numbered
    for name in METHODS:
        if X is not None and hasattr(result, name):
            out[name] = digest(predicted(result, name, X, groups).astype(str).tobytes())
    with tempfile.TemporaryDirectory() as folder:
        if hasattr(result, "to_json"):
            out["json"] = result.to_json()
        if hasattr(result, "save"):
            result.save(Path(folder) / "release")
        elif hasattr(result, "fit"):
            with contextlib.suppress(fv.errors.InputError):  # of what has no file, as a search
                fv.save(result, Path(folder) / "model")
        out |= {f"file {name}": text for name, text in files(Path(folder)).items()}
    return out


def predicted(result: Any, name: str, X: Any, groups: Any, seed: int = 0) -> np.ndarray:
    """A method's answer, with the draws of a seed where it draws, and groups where it reads them."""
    takes = getattr(result, name).__code__.co_varnames if name == "predict" else ()
    options: dict[str, Any] = {"random_state": seed} if "random_state" in takes else {}
    if "sensitive_features" in getattr(result, name).__code__.co_varnames:
        options["sensitive_features"] = groups
    return np.asarray(getattr(result, name)(X, **options))


def differences(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """What differs, in words."""
    return [
        f"{name}: {one.get(name, 'nothing')[:200]} | {other.get(name, 'nothing')[:200]}"
        for name in sorted({*one, *other})
        if one.get(name) != other.get(name)
    ]
