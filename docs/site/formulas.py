"""Formulas between dollars as MathML, which browsers draw by themselves: no script, no font,
nothing fetched."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert


def inline(self: Any, node: nodes.math) -> None:
    """A formula in a line."""
    self.body.append(convert(node.astext()))
    raise nodes.SkipNode


def block(self: Any, node: nodes.math_block) -> None:
    """A formula of its own."""
    self.body.append(
        f"<div class='math' tabindex='0' role='group' "
        f"aria-label='formula'>{convert(node.astext(), display='block')}</div>"
    )
    raise nodes.SkipNode


def setup(app: Any) -> None:
    """The renderer that conf.py names."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
