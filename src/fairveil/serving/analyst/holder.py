"""A holder's data set as it is seen from here: what is published of it, its prices, and whose
signature its statements bear."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...core.events import Event, compose, to_json_dict
from ...core.promise import Promise
from ...curator.elsewhere import Elsewhere
from ...errors import DoorError, InputError, Overspent, SignatureError, complaint
from ...facts import Schema
from ...statement import document, signing
from ...statement.document import PrivacyStatement
from ...statement.signing import Signature
from ..wire.messages import packed
from .connection import Connection

PROTOCOL = 1


class HolderData(Elsewhere):
    """What a holder publishes of one data set, and the connection to ask more. Abstract: see
    `RemoteData`."""

    def __init__(
        self, connection: Connection, name: str, key: str | os.PathLike[str] | None
    ) -> None:
        self._connection, self.name = connection, name
        about = connection.get()
        if about.get("protocol") != PROTOCOL:
            remedy = "Use the version of Fairveil that the holder serves with."
            got = about.get("version")
            raise DoorError.expected(
                f"a door of protocol {PROTOCOL}", of=connection.shown, got=got, remedy=remedy
            )
        self.holder = str(about.get("holder"))
        self._key = _key_of(about, key)
        self.fingerprint = None if about.get("fingerprint") is None else str(about["fingerprint"])
        facts = connection.get("datasets", name)
        self.title, self.terms = str(facts["title"]), str(facts["terms"])
        self.schema = Schema.from_toml(str(facts["schema"]))
        self.promise = Promise.from_dict(facts["promise"])
        self.exact_rows = None if facts["exact_rows"] is None else int(facts["exact_rows"])
        self.seeded, self.features_served = bool(facts["seeded"]), bool(facts["features_served"])
        self.weights = None if facts.get("weights") is None else str(facts["weights"])
        self._part: dict[str, Any] | None = None
        self.signature: Signature | None = None
        # statements as they came, by what is read of them
        self._signed: dict[str, tuple[str, str]] = {}

    @property
    def address(self) -> str:
        """Whose door it is."""
        return self._connection.shown

    def balance(self) -> dict[str, Any]:
        """Spent and remaining budget of the data set, as the holder says now.

        Returns
        -------
        dict
            Plain values.
        """
        found: dict[str, Any] = self._connection.get("datasets", self.name)["balance"]
        return found

    def price(self, plan: Event | list[Event], promise: Promise) -> dict[str, Any]:
        """Price a plan, without a reservation.

        Parameters
        ----------
        plan : Event or list of Event
            The plan.
        promise : Promise
            The guarantee.

        Returns
        -------
        dict
            The cost, and whether the budget suffices for it.
        """
        event = plan if isinstance(plan, Event) else compose(plan)
        content = run_content(self.name, promise, event, view=view_of(None, False, None), sources=1)
        return self._connection.post("datasets", self.name, "price", body=packed(content))

    def require_room(self, events: Sequence[Event], promise: Promise) -> None:
        """Check that the budget suffices for all of these now. Nothing is reserved.

        Parameters
        ----------
        events : sequence of Event
            What is to be released.
        promise : Promise
            The guarantee of each of them.

        Raises
        ------
        Overspent
            If it does not.
        """
        found = self.price(list(events), promise)
        if not found["fits"]:
            spent, left = (float(found["balance"].get(name, 0.0)) for name in ("spent", "left"))
            text = complaint(
                expected=f"at most epsilon {left:g} more",
                of=f"the budget of {self.name!r}",
                got=f"a plan of epsilon {found['epsilon']:g}",
                remedy="Ask for a smaller epsilon. Nothing was released.",
            )
            raise Overspent(
                text, spent=spent, asked=float(found["epsilon"]), left=left, largest_epsilon=left
            )

    @property
    def identity(self) -> tuple[str, str, str | None, int]:
        """Which rows these are: the door, the data set, and the part of a division of it."""
        part = self._part
        return (
            self.address,
            self.name,
            None if part is None else part["division"],
            -1 if part is None else part["number"],
        )

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()

    def checked(self, text: str, signature: str | None) -> Signature | None:
        """Check the holder's signature of a statement.

        Parameters
        ----------
        text : str
            The statement.
        signature : str or None
            Its signature.

        Returns
        -------
        Signature or None
            The signature; an error where it is not the holder's.
        """
        if signature is None:
            if self._key is not None:
                remedy = "Ask the holder to configure signing_key, or leave key= out."
                raise SignatureError.expected(
                    "a signed statement", of=self.address, got="none", remedy=remedy
                )
            return None
        found = Signature.from_json(signature)
        if self._key is not None:
            signing.verify_text(text, found, self._key, "the holder's statement")
        self.signature = found
        self._signed[PrivacyStatement.from_json(text).to_json()] = (text, signature)
        return found

    def write_statement(self, statement: PrivacyStatement, path: str | os.PathLike[str]) -> Path:
        """Write a holder's statement with its signature beside it, for `fairveil verify --key`.

        Parameters
        ----------
        statement : PrivacyStatement
            As a fit through this door has it: ``clf.privacy_``.
        path : path
            File to write. The signature goes to the same name with ``.sig``.

        Returns
        -------
        Path
            The file.
        """
        found = self._signed.get(statement.to_json())
        if found is None:
            remedy = "Pass clf.privacy_ of a fit on this data set."
            expected = "a statement that this holder signed"
            raise InputError.expected(expected, of="statement", got="another", remedy=remedy)
        for place, text in ((Path(path), found[0]), (signing.signature_path(path), found[1])):
            document.write(place, text)
        return Path(path)


def view_of(
    sensitive: tuple[str, ...] | None, sensitive_as_feature: bool, steps: object
) -> dict[str, Any]:
    """How rows are to be coded."""
    names = None if sensitive is None else list(sensitive)
    told = None if steps is None else json.dumps(steps)
    return {"sensitive": names, "sensitive_as_feature": sensitive_as_feature, "steps": told}


def run_content(
    name: str, promise: Promise, plan: Event, *, view: dict[str, Any], sources: int, **more: object
) -> dict[str, Any]:
    """What a run is opened with."""
    told: dict[str, Any] = {
        "seeds": None,
        "public_rows": None,
        "stated_clips": None,
        "purpose": "",
        **more,
    }
    return {
        "dataset": name,
        "promise": promise.to_dict(),
        "plan": to_json_dict(plan),
        "view": view,
        "sources": sources,
        **told,
    }


def _key_of(about: dict[str, Any], given: str | os.PathLike[str] | None) -> Any:
    """The key that statements must be signed by; None where there is none, or nothing to check it
    with."""
    if given is not None:
        found = signing.public_key(given)
        if signing.fingerprint(found) != about.get("fingerprint"):
            remedy = "Ask the holder, by another way, for the fingerprint of the key."
            raise SignatureError.expected(
                "the door of the holder of this key",
                of="key",
                got=about.get("fingerprint"),
                remedy=remedy,
            )
        return found
    pem = about.get("public_key")
    if not isinstance(pem, str):
        return None
    try:
        return signing.public_key_in(pem.encode())
    except InputError:  # without cryptography nothing can be checked, and nothing was asked to be
        return None
