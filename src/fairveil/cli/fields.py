"""What estimators and their settings can be told, read from the classes' own words without importing
them: `fairveil fit` takes its options, their defaults and their help from here, and `--set` knows
every other name. The one place where the command line knows which estimators there are.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.abc import InspectLoader
from importlib.util import find_spec

from ..estimators.words import WORDS, entries, sections

METHODS = {
    "primal-dual": ("fair", "FairClassifier", ("PrimalDual",)),
    "fermi": ("fair", "FairClassifier", ("Fermi",)),
    "oracle-game": ("fair", "FairClassifier", ("OracleGame",)),
    "group-objective": ("fair", "FairClassifier", ("GroupObjective",)),
    "tailored": ("fair", "FairClassifier", ("Tailored",)),
    "post-processing": ("post_processing", "FairPostProcessor", ("Thresholds", "Offsets")),
}
"""The module and the class of each `--method`, and the solvers that it may have."""
SETTINGS = "fairveil.estimators.settings"
SEARCH = ("fairveil.study.private_search", "PrivateSearchCV")
ADDITIVE = ("fairveil.estimators.coding", "Additive")


@dataclass(frozen=True)
class Field:
    """A parameter: what it takes, its default as it is written, and what its class says of it."""

    name: str
    kind: str
    default: str
    words: str

    @property
    def choices(self) -> tuple[str, ...]:
        """The words that it takes, as a command line has them; none where others will do, too."""
        listed = re.fullmatch(r"\{(.*)\}", self.kind.replace("_", "-"))
        return () if listed is None else tuple(re.findall(r'"([\w:-]+)"', listed[1]))

    @property
    def first(self) -> str:
        """The first sentence of its words, without marks of code."""
        return re.split(r"\.(?: |$)", self.words)[0].replace("`", "")


@functools.cache
def fields_of(module: str, name: str) -> dict[str, Field]:
    """The parameters of a class in the order of its signature, by its docstring and the words that
    estimators share.

    >>> fields_of("fairveil.estimators.settings", "SetAside")["share"].default
    '0.3'
    """
    spec = find_spec(module)
    assert spec is not None
    assert isinstance(spec.loader, InspectLoader)
    tree = ast.parse(spec.loader.get_source(module) or "")
    cls = next(one for one in tree.body if isinstance(one, ast.ClassDef) and one.name == name)
    found: dict[str, Field] = {}
    if any(isinstance(one, ast.Name) and one.id == "described" for one in cls.decorator_list):
        found |= fields_of("fairveil.estimators.fitting", "Planning")
    own = entries(sections(ast.get_docstring(cls) or "").get("Parameters", ""))
    names = _targets(cls)
    row = re.compile(r"\w+ : (.*?)(?:, default=(.*))?\n((?:.*\n)*)")
    for name in dict.fromkeys((*names, *own)):
        if (line := row.fullmatch(own.get(name, WORDS.get(name, "")))) is not None:
            found[name] = Field(name, line[1], line[2] or "", " ".join(line[3].split()))
    first = names[: names.index("_")] if "_" in names else []  # `_: KW_ONLY`
    order = dict.fromkeys((*first, *found, *names))
    return {name: found[name] for name in order if name in found}


def _targets(cls: ast.ClassDef) -> list[str]:
    """Names of a class's own parameters: its fields, or the arguments of its `__init__`."""
    for one in cls.body:
        if isinstance(one, ast.FunctionDef) and one.name == "__init__":
            return [arg.arg for arg in (*one.args.args, *one.args.kwonlyargs)]
    lines = (one.target for one in cls.body if isinstance(one, ast.AnnAssign))
    return [one.id for one in lines if isinstance(one, ast.Name)]


def parameters(method: str) -> dict[str, Field]:
    """The parameters of a method's estimator."""
    module, name, _ = METHODS[method]
    return fields_of(f"fairveil.estimators.{module}", name)


def knobs(method: str, model: str = "linear", *, search: bool = False) -> Mapping[str, Field]:
    """The fields of the settings that a method's estimator takes; of an additive model and a search,
    too."""
    kinds = [*METHODS[method][2], *(["SetAside"] if "certify" in parameters(method) else [])]
    places = [(SETTINGS, name) for name in kinds]
    places += [ADDITIVE] * (model == "additive") + [SEARCH] * search
    return {name: one for place in places for name, one in fields_of(*place).items()}
