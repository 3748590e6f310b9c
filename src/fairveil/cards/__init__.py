"""Ring 6: what others ask to be told about a model: model cards, entries of registries, checklists.
Text from data alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from .checklists import nist_checklist as nist_checklist
    from .checklists import w3c_checklist as w3c_checklist
    from .hugging_face import model_card as model_card
    from .registry import registry_entry as registry_entry
    from .registry import registry_findings as registry_findings

PLACES = {
    "model_card": ".hugging_face",
    "nist_checklist": ".checklists",
    "registry_entry": ".registry",
    "registry_findings": ".registry",
    "w3c_checklist": ".checklists",
}

__all__ = ["model_card", "nist_checklist", "registry_entry", "registry_findings", "w3c_checklist"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, PLACES)
