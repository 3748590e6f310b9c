"""Ring 5: finished models in other languages: ONNX, SQL, Python. Nothing here reads training
rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from .writing import export_onnx as export_onnx
    from .writing import export_python as export_python
    from .writing import export_sql as export_sql
    from .writing import onnx_bytes as onnx_bytes
    from .writing import python_source as python_source
    from .writing import sql_query as sql_query

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazily(__name__)
