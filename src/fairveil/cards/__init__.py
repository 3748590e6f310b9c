"""Ring 6: what others ask to be told about a model: model cards. Text from data alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from .hugging_face import model_card as model_card

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazily(__name__)
