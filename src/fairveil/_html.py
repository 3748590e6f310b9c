"""What notebooks show of a result: small tables and lines of text as HTML, every text of the caller
escaped. No scripts."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence


def paragraph(text: str) -> str:
    """
    >>> paragraph("a < b")
    '<p>a &lt; b</p>'
    """
    return f"<p>{html.escape(text)}</p>"


def table(heads: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "") -> str:
    """A table with a caption; the first cell of each row is its head.

    >>> "&lt;f&gt;" in table(["group", "rows"], [["<f>", 3]])
    True
    """
    named = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    head = "".join(f'<th scope="col">{html.escape(one)}</th>' for one in heads)
    body = "".join(f"<tr>{_cells(row)}</tr>" for row in rows)
    return f"<table>{named}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def facts(pairs: Iterable[tuple[str, object]], caption: str = "") -> str:
    """A fact a row: its name, its words."""
    named = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    return f"<table>{named}<tbody>{''.join(f'<tr>{_cells(pair)}</tr>' for pair in pairs)}</tbody></table>"


def _cells(row: Sequence[object]) -> str:
    first, *rest = (html.escape(str(cell)) for cell in row)
    return f'<th scope="row" style="text-align: left">{first}</th>' + "".join(
        f'<td style="text-align: left">{cell}</td>' for cell in rest
    )
