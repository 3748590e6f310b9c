"""Ring 4: data in, honestly. Encoding by a schema alone, loaders, named benchmark sets, synthetic data with known truth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from ..facts.columns import Boolean as Boolean
    from ..facts.columns import Category as Category
    from ..facts.columns import Ignored as Ignored
    from ..facts.columns import Number as Number
    from ..facts.schema import Schema as Schema
    from . import synthetic as synthetic
    from .csv_files import load_csv as load_csv
    from .encoded import EncodedRows as EncodedRows
    from .encoded import encode as encode
    from .encoding import Encoding as Encoding
    from .parquet_files import load_parquet as load_parquet
    from .registry import DataSet as DataSet
    from .registry import get as get
    from .registry import names as names
    from .sql import load_sql as load_sql
    from .streamed import StreamedRows as StreamedRows

PLACES = {
    "Boolean": "..facts.columns",
    "Category": "..facts.columns",
    "DataSet": ".registry",
    "EncodedRows": ".encoded",
    "Encoding": ".encoding",
    "Ignored": "..facts.columns",
    "Number": "..facts.columns",
    "Schema": "..facts.schema",
    "StreamedRows": ".streamed",
    "encode": ".encoded",
    "get": ".registry",
    "load_csv": ".csv_files",
    "load_parquet": ".parquet_files",
    "load_sql": ".sql",
    "names": ".registry",
    "synthetic": ".synthetic",
}

__all__ = [
    "Boolean",
    "Category",
    "DataSet",
    "EncodedRows",
    "Encoding",
    "Ignored",
    "Number",
    "Schema",
    "StreamedRows",
    "encode",
    "get",
    "load_csv",
    "load_parquet",
    "load_sql",
    "names",
    "synthetic",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, PLACES)
