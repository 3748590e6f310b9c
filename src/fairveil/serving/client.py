"""`fairveil.remote`: a data set of a holder, in the place of rows.

    rows = fairveil.remote("https://holder.example", dataset="applicants", token=token)
    clf.fit(rows)

The rows stay with their holder. The learning code runs here and asks the holder's curator, and the
statement comes from there, signed with the holder's key.

Guarantees (tests/serving/test_serving_fits.py, tests/serving/test_serving_crashes.py):
1. What is here of the data set is what the holder publishes of it. A model that is fitted so is,
   from the same noise, the model that the same code fits to the rows, to the bit.
2. One method that releases something is one request with one number: sent again it is answered and
   charged once. Where the server was started anew the run is opened again, and asked all of it
   again. The plan is followed here, too.
3. What no server does is refused with its reason: code of the caller beside rows, choices by
   functions, weights and groups that the holder does not serve.
4. A statement that the holder's key did not sign is refused, where that key was given, or
   cryptography is there to see it.
5. Nothing but HTTPS is spoken to another machine, and its certificate is checked.
"""

from __future__ import annotations

import copy
import http.client
import json
import math
import os
import secrets
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote, urlsplit

import numpy as np
import numpy.typing as npt

from .. import errors
from .._json import Document, Node
from ..core import pricing
from ..core.books import Budget
from ..core.cost import price
from ..core.errors import need
from ..core.events import Event, NoOp, compose, to_json_dict
from ..core.noise import NoiseSource
from ..core.pricing import Measurements, as_measurements, cap_of, require_features_apart
from ..core.promise import Promise
from ..core.public import PublicTable
from ..core.quiet import Troubles
from ..core.rows import Batch
from ..curator import FULL, Curator, Log, LogEntry, Question
from ..data.elsewhere import DescribedRule, Elsewhere, RowsElsewhere
from ..errors import (
    DoorError,
    FairveilError,
    InputError,
    Overspent,
    PrivacyError,
    SignatureError,
    _NotHeld,
)
from ..estimators.fitting import CERTIFICATE
from ..facts import Cells, RowLayout, Schema
from ..ledger import current
from ..statement import document, signing
from ..statement.document import PrivacyStatement, PublicFact
from ..statement.signing import Signature
from .wire import (
    MOST_LINE,
    RemoteHandle,
    array_of,
    described,
    packed,
    rule_described,
    unpacked,
    written,
)

ANSWER = Document("answer of the door", "Ask the holder which version the door has.", DoorError)
PROTOCOL, LARGEST_ANSWER = 4, 1 << 30
TRIES, FIRST_TRIES, WAIT = 9, 4, 0.1
"""Of a request of a run, for some 25 seconds while a server starts again; of a look, for less than
one; the first wait."""
AGAIN = (429, 502, 503, 504)
"""Statuses after which the same request is sent again, later."""
SHOWN_KINDS = (
    *("InputError", "KindError", "SchemaError", "MissingBoundError"),
    *("PrivacyError", "BudgetError", "LedgerError"),
)
TOKEN_VARIABLE = "FAIRVEIL_TOKEN"
Floats = npt.NDArray[np.float64]


class Connection:
    """To one server, with one token. Requests of several threads follow one another."""

    _open: http.client.HTTPConnection | None = None

    def __init__(
        self, url: str, token: str, *, timeout: float = 120.0, cafile: str | None = None
    ) -> None:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and not parts.username and not parts.query
        known, got = known and bool(parts.hostname), parts.hostname or url
        fix = 'Pass "https://holder.example", or "http://127.0.0.1:8422" for this machine.'
        need(known, "the address of a door", of="url", got=got, fix=fix)
        secure = parts.scheme == "https"
        fix = "Token and answers would be open to everybody on the way: use https://."
        here = secure or parts.hostname in ("127.0.0.1", "localhost", "::1")
        need(here, "HTTPS to another machine", of="url", got="http", fix=fix)
        self.shown = f"{parts.scheme}://{parts.netloc}"
        self._host, self._port, self._base = str(parts.hostname), parts.port, parts.path.rstrip("/")
        self._context = ssl.create_default_context(cafile=cafile) if secure else None
        self._token, self._timeout, self._lock = token, timeout, threading.Lock()

    def get(self, *path: str) -> dict[str, Any]:
        """A document."""
        return ANSWER.node(self._sent("GET", path, None, "", FIRST_TRIES)).mapping()

    def act(self, *path: str, body: bytes, key: str) -> Node:
        """A message for a message, answered once however often it has to be sent."""
        return unpacked(self._sent("POST", path, body, key))

    def close(self) -> None:
        """Let go of the connection; the next request opens another."""
        with self._lock:
            self._drop()

    def __del__(self) -> None:
        self._drop()

    def _sent(
        self, method: str, path: tuple[str, ...], body: bytes | None, key: str, tries: int = TRIES
    ) -> bytes:
        place = "/".join((self._base, "v1", *(quote(part, safe="") for part in path)))
        headers = {"Authorization": f"Bearer {self._token}", "Accept-Encoding": "identity"}
        if key:
            headers |= {"Idempotency-Key": key, "Content-Type": "application/vnd.fairveil"}
        trouble: FairveilError = self._away("no answer")
        with self._lock:
            for attempt in range(tries):
                if attempt:
                    time.sleep(WAIT * 2 ** (attempt - 1))
                try:
                    status, raw = self._once(method, place, body, headers)
                except (OSError, http.client.HTTPException) as error:
                    self._drop()
                    trouble = self._away(type(error).__name__)
                    if isinstance(error, ssl.SSLCertVerificationError):
                        got = f"a certificate that is not to be trusted ({error.verify_message})"
                        raise self._away(got) from None
                    continue
                if status == 200:
                    return raw
                trouble = refusal(status, raw)
                if status not in AGAIN:
                    break
        raise trouble

    def _once(
        self, method: str, place: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[int, bytes]:
        if self._open is None:
            to: Any = (self._host, self._port)
            how: dict[str, Any] = {"timeout": self._timeout}
            self._open = (
                http.client.HTTPConnection(*to, **how)
                if self._context is None
                else http.client.HTTPSConnection(*to, **how, context=self._context)
            )
            self._open.connect()
            self._open.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._open.request(method, place, body=body, headers=headers)
        response = self._open.getresponse()
        raw = response.read(LARGEST_ANSWER + 1)
        if len(raw) > LARGEST_ANSWER:
            self._drop()
            raise self._away("an answer that is too large")
        return response.status, raw

    def _drop(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def _away(self, got: str) -> DoorError:
        of, fix = f"the door at {self.shown}", "See whether it is up, then fit again; the holder's "
        fix += "clock settles what was reserved."
        return DoorError.expected("an answer", of=of, got=got, remedy=fix, quote=False)


def refusal(status: int, raw: bytes) -> FairveilError:
    """What a server said no with, as an error of the library."""
    try:
        values = ANSWER.node(raw).mapping()
        sentence, kind = str(values["message"]), str(values.get("kind"))
    except (FairveilError, KeyError):
        return DoorError(f"The door answered with status {status}.")
    figures = values.get("figures")
    if kind == "Overspent" and isinstance(figures, dict):
        names = ("spent", "asked", "left", "largest_epsilon")
        return Overspent(sentence, **{name: float(figures.get(name, 0.0)) for name in names})
    if values.get("error") == "resume":
        return _NotHeld(sentence)
    shown = status in (422, 409) and kind in SHOWN_KINDS
    found: FairveilError = getattr(errors, kind if shown else "DoorError")(sentence)
    return found


# -- a data set ------------------------------------------------------------------------------------


class RemoteData(Elsewhere):
    """Data set of a holder, which estimators take in place of X.

    `remote` makes one.

    Attributes
    ----------
    name : str
        Name of the data set, as the holder serves it.
    title : str
        Title in words.
    terms : str
        Terms of use.
    schema : Schema
        Public facts of the table.
    promise : Promise
        Guarantee of the holder's ledger.
    exact_rows : int or None
        Number of rows, where it is public.
    address : str
        Address of the holder's door.

    See Also
    --------
    remote : Connects to a holder.
    """

    def __init__(
        self, connection: Connection, name: str, key: str | os.PathLike[str] | None
    ) -> None:
        self._connection, self.name, self.address = connection, name, connection.shown
        about, fix = connection.get(), "Use the version of Fairveil that the holder serves with."
        known, expected = about.get("protocol") == PROTOCOL, f"a door of protocol {PROTOCOL}"
        got = about.get("version")
        need(known, expected, of=self.address, got=got, fix=fix, error=DoorError)
        self.holder, self.fingerprint = str(about.get("holder")), about.get("fingerprint")
        self._key = _key_of(about, key)
        facts = connection.get("datasets", name)
        self.title, self.terms = str(facts["title"]), str(facts["terms"])
        self.schema = Schema.from_toml(str(facts["schema"]))
        self.promise = Promise.from_dict(facts["promise"])
        self.exact_rows = None if facts["exact_rows"] is None else int(facts["exact_rows"])
        self.seeded, self.features_served = bool(facts["seeded"]), bool(facts["features_served"])
        self.sensitive_as_feature = bool(facts["sensitive_as_feature"])
        self._part: tuple[str | None, int] = (None, 0)
        # statements as they came, with their signatures, by what is read of them
        self._signed: dict[str, tuple[str, str]] = {}

    def balance(self) -> dict[str, Any]:
        """Spent and remaining budget of the data set, as the holder says now.

        Returns
        -------
        dict
            Plain values.
        """
        found: dict[str, Any] = self._connection.get("datasets", self.name)["balance"]
        return found

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
        now = self.balance()
        spent, left = (float(now.get(name, 0.0)) for name in ("spent", "left"))
        asked = price(compose(events), self.promise.delta, promise.neighbours).epsilon
        if asked <= left:
            return
        told: dict[str, Any] = {"of": f"the budget of {self.name!r}"}
        told |= {"got": f"a plan of epsilon {asked:g}", "remedy": "Ask for a smaller epsilon."}
        text = errors.complaint(expected=f"at most epsilon {left:g} more", **told)
        raise Overspent(text, spent=spent, asked=asked, left=left, largest_epsilon=left)

    @property
    def identity(self) -> tuple[str, str, str | None, int]:
        """Which rows these are: the server, the data set, and the part of a division of it."""
        return (self.address, self.name, *self._part)

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()

    def _checked(self, text: str, signature: str | None) -> PrivacyStatement:
        """The statement; an error where it has not the holder's signature."""
        fix = "Ask the holder to configure signing_key, or leave key= out."
        told: dict[str, Any] = {"of": self.address, "got": "none", "fix": fix}
        signed = signature is not None or self._key is None
        need(signed, "a signed statement", **told, error=SignatureError)
        if signature is not None and self._key is not None:
            found = Signature.from_json(signature)
            signing.verify_text(text, found, self._key, "the holder's statement")
        statement = PrivacyStatement.from_json(text)
        if signature is not None:
            self._signed[statement.to_json()] = (text, signature)
        return statement

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
        found, fix = self._signed.get(statement.to_json()), "Pass clf.privacy_ of a fit on this."
        need(found, "a statement that this holder signed", of="statement", got="another", fix=fix)
        places = (Path(path), signing.signature_path(path))
        for place, text in zip(places, found or (), strict=True):
            document.write(place, text)
        return Path(path)

    def rows(
        self,
        layout: RowLayout,
        schema: Schema,
        sensitive_as_feature: bool,
        steps: object = None,
        *,
        target_as_number: bool = False,
    ) -> RowsElsewhere:
        """Rows elsewhere, as a curator takes them.

        Parameters
        ----------
        layout : RowLayout
            Columns of the coded rows.
        schema : Schema
            Public facts of the table; its groups are the holder's.
        sensitive_as_feature : bool
            Whether sensitive columns are features too, as the holder serves them.
        steps : Shapes, default=None
            Steps of an additive model. None: a linear one.
        target_as_number : bool, default=False
            Whether the target is the last number, too.

        Returns
        -------
        RowsElsewhere
            The rows.
        """
        own, fix = list(self.schema.sensitive), "Leave sensitive_features= out."
        same, of = list(schema.sensitive) == own, "sensitive_features"
        need(same, f"the holder's {own}", of=of, got=list(schema.sensitive), fix=fix)
        same, of = sensitive_as_feature == self.sensitive_as_feature, "sensitive_as_feature"
        fix = "The holder says which columns are features."
        need(same, str(not sensitive_as_feature), of=of, got=sensitive_as_feature, fix=fix)
        told = None if steps is None else json.dumps(steps)
        view: dict[str, Any] = {"steps": told, "target_as_number": target_as_number}
        view |= {"division": self._part[0], "part": self._part[1]}
        return RemoteRows(layout, self, view)

    def parted(
        self, share: float, seed: int | None = None, coins: str = CERTIFICATE
    ) -> tuple[RemoteData, RemoteData]:
        """Divide the data set by coins of the holder, for a fit and its certificate or score.

        Parameters
        ----------
        share : float
            Probability with which a row is set aside.
        seed : int, default=None
            Seed of the coins, which a door for tests alone takes. None: secret ones.
        coins : {"certificate", "search"}, default="certificate"
            What the rows are set aside for.

        Returns
        -------
        tuple of RemoteData
            Those that stay, and those set aside.
        """
        whole, fix = self._part[0] is None, "Divide the whole data set."
        need(whole, "a whole data set", of="remote data", got="a part", fix=fix)
        root = NoiseSource.of(seed).seeded_root
        body = packed(
            {"share": share, "seed": None if root is None else root.hex(), "coins": coins}
        )
        key = secrets.token_hex(16)
        found = self._connection.act("datasets", self.name, "divide", body=body, key=key)
        counts = None if found["rows"].is_null else [one.whole() for one in found["rows"].list(2)]
        parts = (copy.copy(self), copy.copy(self))
        for number, part in enumerate(parts):
            part._part = found["division"].text(), number
            part.exact_rows = None if counts is None else counts[number]
        return parts

    def __repr__(self) -> str:
        part = "" if self._part[0] is None else f", part={self._part[1]}"
        return f"RemoteData({self.address!r}, {self.name!r}{part})"

    def __sklearn_clone__(self) -> RemoteData:
        return self


def _key_of(about: dict[str, Any], given: str | os.PathLike[str] | None) -> Any:
    """The key that statements must be signed by; None where there is none, or nothing to check it
    with."""
    if given is not None:
        found, shown = signing.public_key(given), about.get("fingerprint")
        same, expected = signing.fingerprint(found) == shown, "the door of the holder of this key"
        fix = "Ask the holder, by another way, for the fingerprint of the key."
        need(same, expected, of="key", got=shown, fix=fix, error=SignatureError)
        return found
    pem = about.get("public_key")
    try:
        return signing.public_key_in(pem.encode()) if isinstance(pem, str) else None
    except InputError:  # without cryptography nothing can be checked, and nothing was asked to be
        return None


def remote(
    url: str,
    dataset: str,
    *,
    token: str | None = None,
    key: str | os.PathLike[str] | None = None,
    cafile: str | None = None,
    timeout: float = 120.0,
) -> RemoteData:
    """Connect to a holder's data set, to be passed in the place of rows.

    For example ``clf.fit(fairveil.remote(url, "applicants", token=token))``.

    Parameters
    ----------
    url : str
        The address of the holder's door. Plain HTTP is spoken to this machine alone.
    dataset : str
        The name of the data set, as the holder serves it.
    token : str, default=None
        Token that the holder gave you. None: the environment variable FAIRVEIL_TOKEN.
    key : path, default=None
        The holder's public key, which you received another way: statements must be signed by it.
        None: the key that the door shows. It proves that one key signed all statements, and not
        whose it is.
    cafile : path, default=None
        Certificates to trust, in PEM, where the holder's is not signed by a public authority. None:
        those of the system.
    timeout : float, default=120.0
        Seconds to wait for a reply before the request is repeated, under the same key.

    Returns
    -------
    RemoteData
        Estimators, `frontier`, `certify` and `private_audit` take it in place of X; y and the
        groups are the holder's.

    Raises
    ------
    DoorError
        If the holder's door does not answer, or refuses.
    """
    given = token if token is not None else os.environ.get(TOKEN_VARIABLE)
    fix = f"Pass token=, or set {TOKEN_VARIABLE}; the holder issues it."
    need(given, "a token", of="remote", got=None, fix=fix)
    named, of = dataset and len(dataset) <= 63, "dataset"
    need(named, "the name of a data set", of=of, got=dataset, fix="Ask the holder.")
    finite, fix = 0 < timeout < math.inf, "Pass timeout=120.0, for example."
    need(finite, "seconds above 0", of="timeout", got=timeout, fix=fix)
    connection = Connection(url, str(given), timeout=timeout, cafile=cafile)
    try:
        return RemoteData(connection, dataset, key)
    except BaseException:
        connection.close()
        raise


# -- a run -----------------------------------------------------------------------------------------


class RemoteRows(RowsElsewhere):
    """The rows of one data set, coded as a view says."""

    def __init__(self, layout: RowLayout, data: RemoteData, view: dict[str, Any]) -> None:
        super().__init__(layout, data.exact_rows, by_person=data.schema.unit is not None)
        self.data, self.view = data, view

    def open_run(self, promise: Promise, **options: Any) -> Curator:
        """A run with the holder."""
        return RemoteCurator(self, promise, **options)


class RemoteCurator(Curator):
    """One run with a holder. See `Curator` for what its methods answer."""

    def __init__(
        self,
        rows: RemoteRows,
        promise: Promise,
        *,
        plan: Event | Iterable[Event] | None = None,
        noise: NoiseSource | Sequence[NoiseSource] | None = None,
        public_rows: int | None = None,
        facts: Iterable[PublicFact] = (),
        threads: int | None = None,
        purpose: str = "",
        stated_clips: Sequence[float] | None = None,
        one_group: bool = False,
        **others: Any,
    ) -> None:
        whole = None if plan is None else compose([plan] if isinstance(plan, Event) else plan)
        require_servable(promise, whole, others)
        assert whole is not None
        require_features_apart(rows.layout, promise.protects)
        self.promise, self.layout = promise, rows.layout
        self._rows, self._data, self._connection = rows, rows.data, rows.data._connection
        self._public_rows, self._scalings, self._facts = public_rows, (), tuple(facts)
        self._troubles, self._budget = Troubles(), Budget(promise, whole, None)
        self.journal, self.log, self._ended = None, Log(), False
        if isinstance(noise, NoiseSource):
            noise = [noise]
        roots = [one.seeded_root for one in noise or [NoiseSource.secure()]]
        seeds = None if None in roots else [cast(bytes, root).hex() for root in roots]
        told: dict[str, Any] = {"dataset": self._data.name, "promise": promise.to_dict()}
        told |= {"plan": to_json_dict(whole), "view": {**rows.view, "one_group": one_group}}
        told |= {"sources": len(roots), "seeds": seeds, "public_rows": public_rows}
        told["stated_clips"] = None if stated_clips is None else list(map(float, stated_clips))
        self._opening = packed({**told, "purpose": _short(purpose)}), secrets.token_hex(16)
        self._asked = list[tuple[str, bytes]]()
        self._run = self._begin()

    # -- asking ------------------------------------------------------------------------------------

    def answer(
        self, measurements: Measurements, batch: Batch = FULL, *, purpose: str = ""
    ) -> list[Floats]:
        """One joint noisy answer of the holder's curator, in one request."""
        asked = as_measurements(measurements)
        asks, told = list(map(written, asked)), written(batch)
        event, answers = self.describe(asked, batch), list[Floats]()
        with self._budget.release(event) as number:
            found = self._done("ask", asks=asks, batch=told, purpose=_short(purpose))
            for one, node in zip(asked, found["answers"].list(len(asked)), strict=True):
                question, answer = one.question, np.array(array_of(node), np.float64)
                wanted = question.shape(self.layout)
                wanted = (question.models, *wanted) if one.is_many else wanted
                same, fix = answer.shape == wanted, "Ask the holder which version the door has."
                told_as: dict[str, Any] = {"of": "the door", "got": answer.shape, "fix": fix}
                need(same, f"an answer of shape {wanted}", **told_as, error=PrivacyError)
                answers.append(answer)
            names = tuple(one.question.name for one in asked)
            self._logged(number, event, names, purpose)
        return answers

    def choose(
        self,
        question: Question | Sequence[Question],
        epsilon: float,
        *,
        cell_weights: Sequence[float] | None = None,
        costs: object = None,
        score: object = None,
        purpose: str = "",
    ) -> int:
        """The exponential mechanism, at the holder's."""
        if score is not None:
            self.describe_range(question, score)
        asked, told = pricing.as_questions(question), {"epsilon": float(epsilon)}
        content: dict[str, Any] = {**told, "questions": [*map(described, asked)]}
        for name, value in (("cell_weights", cell_weights), ("costs", costs)):
            content[name] = None if value is None else np.asarray(value, np.float64)
        event = self.describe_choice(asked, epsilon)
        with self._budget.release(event) as number:
            found = self._done("choose", **content, purpose=_short(purpose))
            index = int(array_of(found["index"])[0])
            self._logged(number, event, tuple(f"choice by {one.name}" for one in asked), purpose)
        return index

    def attach(
        self,
        model: Callable[..., Any] | DescribedRule,
        *,
        columns_read: Iterable[str] = ("features",),
        title: str = "a model made elsewhere",
    ) -> Any:
        """A finished model that was described; its decisions, or probabilities, stay with the
        holder."""
        kind = "probabilities" if isinstance(model, DescribedRule) and model.soft else "decisions"
        return self._attach(model, 0, columns_read, title, kind)

    def attach_codes(
        self,
        codes: object,
        count: int,
        *,
        columns_read: Iterable[str] = ("features",),
        title: str = "codes made elsewhere",
    ) -> Any:
        """Codes of a finished model that was described."""
        return self._attach(codes, count, columns_read, title, "codes")

    def public_table(self, cells: Cells | None = None, *, most: int = 1 << 22) -> PublicTable:
        """Features and labels, where they are public and the holder serves them."""
        if not self.promise.features_are_public or not self._data.features_served:
            fix = "Choose a method that asks sums alone; or ask the holder to serve them."
            raise _refused("the table of features and labels", fix)
        found = self._done("table", most=min(int(most), 1 << 22))
        features, labels, weights = (
            np.array(array_of(found[name])) for name in ("features", "labels", "weights")
        )
        told = (features, np.asarray(labels, np.intp), weights, found["step"].whole(), None)
        return PublicTable(*told)

    def rescale(self, scale: object, shift: object) -> None:
        """New units of the numbers, at the holder's."""
        scale, shift = (np.array(one, np.float64) for one in (scale, shift))
        self._done("rescale", scale=scale, shift=shift)
        for one in (scale, shift):
            one.setflags(write=False)
        self._scalings = (*self._scalings, (scale, shift))

    def describe_range(
        self, question: Question | Sequence[Question], score: object
    ) -> tuple[float, float]:
        """Of a choice by a function, which no server makes."""
        got = "a choice by a function, which would run beside the rows"
        raise _refused(got, "Choose by costs or cell_weights.")

    # -- the end -----------------------------------------------------------------------------------

    def close(self) -> None:
        """End the run: the holder settles it by what was released."""
        self._budget.close()
        if not self._ended:
            self._ended = True
            self._connection.act("runs", self._run, "close", body=packed({}), key=LOOK)

    def finish(self) -> Event:
        """The plan was done."""
        self._done("finish")
        self._ended = True
        self._budget.close()
        return compose(self.log.events)

    def statement(
        self,
        *,
        not_covered: Iterable[str] = (),
        tuning: str | None = None,
        earlier_releases: str | None = None,
        groups: Iterable[object] = (),
    ) -> PrivacyStatement:
        """The holder's statement, its signature checked. It names no prices of single groups."""
        told = [*not_covered, *(words for words in (tuning, earlier_releases) if words)]
        found = self._done("statement", not_covered=told)
        # as the holder wrote it, whose digest was signed
        text = json.dumps(found["statement"].mapping(), indent=2, allow_nan=False) + "\n"
        signature = found["signature"]
        signed = None if signature.is_null else json.dumps(signature.mapping())
        return self._data._checked(text, signed)

    # -- inside ------------------------------------------------------------------------------------

    def _begin(self) -> str:
        body, key = self._opening
        return self._connection.act("runs", body=body, key=key)["run"].text()

    def _done(self, act: str, **content: object) -> Node:
        body, looks, trouble = packed(content), act in ("table", "statement"), None
        for _ in range(TRIES):
            try:
                if trouble is not None:  # the server was started anew: guarantee 2
                    self._begin()
                    for number, (before, asked) in enumerate(self._asked, 1):
                        self._at(before, asked, f"{number:08d}")
                found = self._at(act, body, LOOK if looks else f"{len(self._asked) + 1:08d}")
            except _NotHeld as error:
                trouble = error
                continue
            self._asked += [] if looks else [(act, body)]
            return found
        assert trouble is not None
        raise trouble

    def _at(self, act: str, body: bytes, key: str) -> Node:
        return self._connection.act("runs", self._run, act, body=body, key=key)

    def _attach(
        self, rule: object, count: int, columns_read: Iterable[str], title: str, kind: str
    ) -> RemoteHandle:
        if not isinstance(rule, DescribedRule):
            fix = "Pass a fitted linear or additive model of Fairveil, which is described."
            raise _refused("code of the caller beside the rows", fix)
        told = {**rule_described(rule), "count": max(count, rule.decisions), "title": _short(title)}
        number = self._done("attach", **told, handle=kind)["handle"].whole()
        handle = RemoteHandle(len(self.layout.classes or ()), columns_read, title)
        if kind == "codes":
            handle = RemoteHandle(count, rule.columns_read, title, is_code=True)
        handle.number_in_run = number
        return handle

    def _logged(self, number: int, event: Event, names: tuple[str, ...], purpose: str) -> None:
        if not isinstance(event, NoOp):
            self.log.append(LogEntry(number, event, names, "as asked", purpose))

    @property
    def _cap(self) -> float | None:
        return cap_of(self._rows, self.promise)


LOOK = "00000000"
"""The number of a request that releases nothing and changes nothing."""


def require_servable(promise: Promise, plan: Event | None, others: dict[str, Any]) -> None:
    """What no server does, refused here with the reason. `others`: options of `Curator` that are for
    rows in this process."""
    if not promise.is_private:
        raise _refused("a fit without privacy", "Pass a finite epsilon.")
    if plan is None or others.pop("cap", None) is not None:
        raise _refused("answers that no plan fixed", "Use a method that plans: all estimators do.")
    if others.pop("ledger", None) is not None or current() is not None:
        fix = "Leave ledger= out: the holder's ledger has the budget."
        raise _refused("a ledger of the analyst's", fix)
    if others.pop("heard", None) is not None or others.pop("earlier", None) is not None:
        fix = "Leave checkpoint= out: the holder keeps the run."
        raise _refused("a checkpoint of the analyst's", fix)
    if tuple(others.pop("bounds", ())):
        raise _refused("anything read from the data", "Leave unsafe_data_dependent_bounds=False.")
    if others:
        raise TypeError(f"unexpected options {sorted(others)}")


def _refused(got: str, fix: str) -> InputError:
    of, expected = "remote data", "what a door can do"
    return InputError.expected(expected, of=of, got=got, remedy=fix, quote=False)


def _short(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)[:MOST_LINE]
