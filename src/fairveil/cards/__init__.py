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

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazily(__name__)
