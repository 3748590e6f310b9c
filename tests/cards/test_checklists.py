"""Checklists: every item of the statement once, and what it does not say beside."""

from __future__ import annotations

import pytest
from cards_samples import model

from fairveil.cards import nist_checklist, w3c_checklist
from fairveil.cards.checklists import NIST, NOT_SAID, W3C, Part
from fairveil.errors import InputError
from fairveil.privacy.statement.words import items


@pytest.mark.parametrize(("parts", "write"), [(NIST, nist_checklist), (W3C, w3c_checklist)])
def test_every_item_stands_once_and_what_is_not_said_is_listed(
    parts: tuple[Part, ...], write: object
) -> None:
    told = dict(items(model().privacy_))
    listed = [name for _, names, _ in parts for name in names]
    assert sorted(listed) == sorted(told)
    text = write(model().privacy_)  # type: ignore[operator]
    for name, words in told.items():
        assert text.count(f"- {name}: {words}\n") == 1
    missing = [one for _, _, ones in parts for one in ones]
    assert missing
    assert text.count(NOT_SAID) == len(missing)
    with pytest.raises(InputError):
        write(model())  # type: ignore[operator]
