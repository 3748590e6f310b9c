"""An entry of the differential privacy deployments registry (Nanayakkara, Ghazi and Vadhan, arXiv
2509.13509).

The fields and their kinds are those of the registry's own schema, `deployments-schema.yaml` in the
public repository opendp/deployments-registry-data, as of July 2026. A statement knows what was
done. Who publishes the model, for what and where is told by the caller. What neither says is left
out, and a required field that is missing is an error.

Guarantees (tests/cards/test_registry.py):
1. An entry keeps the schema: no other field, every required one, each value of its kind. Beyond the
   schema, no text is empty and the slug has no spaces.
2. The tier is the highest one whose fields are all there, and never above what was stated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from ..errors import InputError
from ..privacy.statement.statement import PrivacyStatement
from ..privacy.statement.words import items

VARIANTS = ("Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom")
PRODUCTS = (
    "Summary statistics",
    "Machine learning model",
    "Dataset",
    "Synthetic data",
    "Interactive API",
    "SQL queries",
)
SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")
MODELS = ("Local", "Central", "Shuffle", "Federated", "Varies")
STATUSES = (
    *("Converted", "Draft", "Pending", "Changes Required", "Approved"),
    *("Approved (Update Requested)", "Approved (Pending)"),
)
TEXT, TEXTS, DATE, NUMBER, NUMBER_OR_TEXT, ANY = (
    "text",
    "texts",
    "date",
    "number",
    "number or text",
    "any",
)
Kind = str | tuple[str, ...]
# field -> (tier, kind); a tuple of words is the list of what it may be
FIELDS: dict[str, dict[str, tuple[int, Kind]]] = {
    "basic": {
        "name": (1, TEXT),
        "data_curators": (1, TEXTS),
        "intended_use": (1, TEXT),
        "data_product_type": (1, PRODUCTS),
        "data_product_region": (1, TEXT),
        "description": (1, TEXT),
        "publication_date": (1, DATE),
        "data_product_sector": (1, SECTORS),
    },
    "dp_variant": {
        "variant_name": (2, VARIANTS),
        "data_domain": (3, TEXT),
        "unprotected_quantities": (3, TEXT),
    },
    "privacy_loss": {
        "privacy_unit": (2, TEXT),
        "privacy_unit_details": (3, TEXT),
        "privacy_parameters": (2, ANY),
        "privacy_parameters_details": (3, ANY),
    },
    "deployment_model": {
        "model_name": (2, MODELS),
        "model_name_details": (0, TEXT),
        "actors": (3, TEXT),
        "release_type": (2, ("One release", "Many releases")),
        "release_type_details": (0, TEXT),
        "data_source_type": (2, ("Static", "Dynamic")),
        "data_source_type_details": (0, ANY),
        "access_type": (2, ("Interactive", "Non-interactive")),
        "access_type_details": (0, ANY),
    },
    "accounting": {"post_processing": (3, TEXT), "composition": (3, TEXT)},
    "implementation": {
        "preprocessing_and_hyperparameter_tuning": (3, TEXT),
        "mechanisms": (3, TEXT),
        "justification": (3, TEXT),
    },
    "administrative": {"sources": (0, TEXT), "notes": (0, TEXT), "registry_authors": (0, TEXTS)},
}
PARAMETERS: dict[str, Kind] = {"epsilon": NUMBER, "delta": NUMBER_OR_TEXT, "rho": NUMBER}
REQUIRED = {
    "basic": tuple(name for name in FIELDS["basic"] if name != "data_product_sector"),
    "administrative": ("registry_authors",),
}
STATED = (
    "url_slug",
    "name",
    "data_curators",
    "intended_use",
    "data_product_region",
    "description",
    "publication_date",
    "registry_authors",
)
"""What no statement knows."""
OWN = (
    "data_product_type",
    "variant_name",
    "privacy_parameters",
    "privacy_unit",
    "privacy_unit_details",
    "release_type",
    "access_type",
)
"""What the statement decides, so that nobody states it otherwise."""
SLUG = re.compile(r"[A-Za-z0-9][\w\-.]{0,199}")


def registry_entry(statement: object, facts: object) -> dict[str, Any]:
    """The entry as plain values, with the status "Draft".

    Parameters
    ----------
    statement : PrivacyStatement
        `clf.privacy_`, of a model that is private.
    facts : dict
        What the statement does not know, by the names of the schema's fields: `url_slug`, `name`,
        `data_curators` (a list), `intended_use`, `data_product_region`, `description`,
        `publication_date` ("YYYY-MM-DD"), `registry_authors` (a list). Any other field of the
        schema is optional, for example `data_source_type`, `actors` or `justification`.
    """
    if not isinstance(statement, PrivacyStatement):
        got, remedy = type(statement).__name__, "Pass clf.privacy_."
        raise InputError.expected("a privacy statement", of="statement", got=got, remedy=remedy)
    if not statement.is_private:
        remedy = (
            "The registry is of deployments with differential privacy: fit with a finite epsilon."
        )
        raise InputError.expected("a finite epsilon", of="statement", got="inf", remedy=remedy)
    places = {name: room for room, names in FIELDS.items() for name in names}
    stated = _stated(facts, places)
    deployment: dict[str, dict[str, Any]] = {room: {} for room in FIELDS}
    for name, value in {**_known(statement), **stated}.items():
        if name != "url_slug":
            deployment[places[name]][name] = value
    ordered = {
        room: {name: deployment[room][name] for name in FIELDS[room] if name in deployment[room]}
        for room in FIELDS
    }
    kept = {room: values for room, values in ordered.items() if values}
    entry = {
        "url_slug": stated["url_slug"],
        "status": "Draft",
        "tier": _tier(kept),
        "deployment": kept,
    }
    found = registry_findings(entry)
    if found:
        raise InputError.expected(
            "values as the schema has them",
            of="facts",
            got=found[0],
            remedy="Mend it.",
            quote=False,
        )
    return entry


def _stated(facts: object, places: Mapping[str, str]) -> Mapping[str, Any]:
    """The caller's facts, if they are those that a caller states."""
    if not isinstance(facts, Mapping):
        remedy = "Pass facts={'name': ..., ...}."
        raise InputError.expected(
            "facts by name", of="facts", got=type(facts).__name__, remedy=remedy
        )
    strange = [name for name in facts if name not in (*places, "url_slug") or name in OWN]
    if strange:
        remedy = "The statement says it." if strange[0] in OWN else "Leave it out."
        raise InputError.expected(
            "fields of the schema", of="facts", got=strange[0], remedy=remedy, among=places
        )
    missing = [name for name in STATED if name not in facts]
    if missing:
        remedy = "State them: nothing is made up."
        raise InputError.expected(
            f"also {', '.join(missing)}", of="facts", got=sorted(facts), remedy=remedy
        )
    return facts


def registry_findings(entry: object) -> list[str]:
    """Everything in which an entry departs from the registry's schema; empty where it keeps it."""
    return list(_findings(entry))


def _known(statement: PrivacyStatement) -> dict[str, Any]:
    """What the statement says, in the schema's fields."""
    words, promise = dict(items(statement)), statement.promise
    whose = "one row of the table" if promise.unit is None else str(promise.unit)
    unit = (
        f"{whose[0].upper()}{whose[1:]}"
        if promise.protects == "records"
        else f"The sensitive columns of {whose}"
    )
    how = (
        f"{name}: {words[name]}"
        for name in ("Mechanisms", "Noise source", "Floating point", "Versions")
    )
    return {
        "data_product_type": "Machine learning model",
        "variant_name": "Pure DP" if statement.delta == 0 else "Approximate DP",
        "unprotected_quantities": f"{words['Taken as public']} Not covered: {words['Not covered']}",
        "privacy_unit": unit,
        "privacy_unit_details": f"{words['Neighbours']} {words['Unit']}",
        "privacy_parameters": {"epsilon": statement.epsilon, "delta": statement.delta},
        "model_name": "Central",
        "model_name_details": words["Trust model"],
        "release_type": "One release",
        "release_type_details": f"Earlier releases: {words['Earlier releases']}",
        "access_type": "Non-interactive",
        "composition": words["Composition"],
        "preprocessing_and_hyperparameter_tuning": words["Tuning"],
        "mechanisms": " ".join(how),
    }


def _tier(deployment: Mapping[str, Mapping[str, Any]]) -> int:
    tier = 1
    for level in (2, 3):
        wanted = [
            (room, name)
            for room, names in FIELDS.items()
            for name, (at, _) in names.items()
            if at == level
        ]
        optional = "privacy_parameters_details"
        if all(name in deployment.get(room, {}) for room, name in wanted if name != optional):
            tier = level
        else:
            break
    return tier


def _findings(entry: object) -> Iterator[str]:
    if not isinstance(entry, Mapping):
        yield "the entry is no mapping"
        return
    top = {"url_slug", "status", "tier", "deployment"}
    yield from (f"{name} is no field" for name in entry if name not in top)
    yield from (f"{name} is missing" for name in sorted(top - set(entry)))
    if not isinstance(entry.get("url_slug"), str) or not SLUG.fullmatch(entry["url_slug"]):
        yield "url_slug: expected letters, digits, dots and dashes"
    if entry.get("status") not in STATUSES:
        yield f"status: expected one of {', '.join(STATUSES)}"
    if entry.get("tier") not in (1, 2, 3) or isinstance(entry.get("tier"), bool):
        yield "tier: expected 1, 2 or 3"
    deployment = entry.get("deployment")
    if not isinstance(deployment, Mapping):
        yield "deployment is no mapping"
        return
    if "basic" not in deployment:
        yield "deployment: basic is missing"
    for room, values in deployment.items():
        if room not in FIELDS or not isinstance(values, Mapping):
            yield f"deployment: {room} is no part"
            continue
        yield from (
            f"{room}: {name} is missing" for name in REQUIRED.get(room, ()) if name not in values
        )
        for name, value in values.items():
            if name not in FIELDS[room]:
                yield f"{room}: {name} is no field"
            elif name == "privacy_parameters":
                yield from _parameters(value)
            elif not _fits(value, FIELDS[room][name][1]):
                yield f"{room}.{name}: expected {_shown(FIELDS[room][name][1])}"


def _parameters(value: object) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield "privacy_parameters is no mapping"
        return
    for name, one in value.items():
        if name not in PARAMETERS:
            yield f"privacy_parameters: {name} is no field"
        elif not _fits(one, PARAMETERS[name]):
            yield f"privacy_parameters.{name}: expected {_shown(PARAMETERS[name])}"


def _fits(value: object, kind: Kind) -> bool:
    if isinstance(kind, tuple):
        return value in kind
    if kind == TEXTS:
        return (
            isinstance(value, Sequence)
            and not isinstance(value, str)
            and bool(value)
            and all(_is_text(one) for one in value)
        )
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return {
        TEXT: _is_text(value),
        DATE: isinstance(value, str) and _is_date(value),
        NUMBER: number,
        NUMBER_OR_TEXT: number or isinstance(value, str),
        ANY: True,
    }[kind]


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_date(value: str) -> bool:
    try:
        return date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False


def _shown(kind: Kind) -> str:
    if isinstance(kind, tuple):
        return f"one of {', '.join(kind)}"
    return {
        TEXT: "a text",
        TEXTS: "a list of texts",
        DATE: "a date as 2026-01-31",
        ANY: "a value",
    }.get(kind, f"a {kind}")
