"""`fairveil.remote`: a data set of a holder, in the place of rows.

    rows = fairveil.remote("https://holder.example", dataset="applicants", token=token)
    clf.fit(rows)

The rows stay with their holder. The learning code runs here and asks the holder's curator, and the
statement comes from there, signed with the holder's key.

Guarantees (tests/serving/test_serving_fits.py):
1. What is here of the data set is what the holder publishes of it.
2. A model that is fitted through the door is, from the same noise, the model that the same code
   fits to the rows, to the bit.
3. A statement that the holder's key did not sign is refused, where that key was given, or
   cryptography is there to see it.
"""

from __future__ import annotations

import copy
import math
import os

from ...core.noise import NoiseSource
from ...curator.elsewhere import RowsElsewhere
from ...errors import InputError
from ...estimators.fitting.row_parts import CERTIFICATE
from ...facts import RowLayout, Schema
from ..wire.messages import packed
from .connection import Connection
from .holder import HolderData, view_of
from .remote_curator import RemoteRows

TOKEN_VARIABLE = "FAIRVEIL_TOKEN"


class RemoteData(HolderData):
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
    weights : str or None
        Column of sample weights that the holder serves: pass ``sample_weight=`` its name. None:
        rows count once.
    address : str
        Address of the holder's door.

    See Also
    --------
    remote : Connects to a holder.
    """

    def rows(
        self,
        layout: RowLayout,
        schema: Schema,
        sensitive_as_feature: bool,
        steps: object = None,
        *,
        weight_cap: float | None = None,
        target_as_number: bool = False,
    ) -> RowsElsewhere:
        """Rows elsewhere, as a curator takes them.

        Parameters
        ----------
        layout : RowLayout
            Columns of the coded rows.
        schema : Schema
            Public facts of the table.
        sensitive_as_feature : bool
            Whether sensitive columns are features too.
        steps : Shapes, default=None
            Steps of an additive model. None: a linear one.
        weight_cap : float, default=None
            Where the holder's weights are cut. None: rows count once.
        target_as_number : bool, default=False
            Whether the target is the last number, too.

        Returns
        -------
        RowsElsewhere
            The rows.
        """
        names = None if schema.sensitive == self.schema.sensitive else schema.sensitive
        view = view_of(names, sensitive_as_feature, steps)
        told = {
            "weight_cap": weight_cap,
            "target_as_number": target_as_number or None,
            "part": self._part,
        }
        view |= {name: value for name, value in told.items() if value is not None}
        return RemoteRows(
            layout, self, view, weight_cap=weight_cap, by_person=self.schema.unit is not None
        )

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
        if self._part is not None:
            remedy = "Divide the whole data set."
            raise InputError.expected(
                "a whole data set", of="remote data", got="a part", remedy=remedy
            )
        root = NoiseSource.of(seed).seeded_root
        content = {"share": share, "seed": None if root is None else root.hex(), "coins": coins}
        found = self._connection.act("datasets", self.name, "divide", body=packed(content)).content
        counts = None if found["rows"].is_null else [one.whole() for one in found["rows"].list(2)]
        parts = []
        for number in (0, 1):
            part = copy.copy(self)
            part._part = {"division": found["division"].text(), "number": number}
            part.exact_rows = None if counts is None else counts[number]
            parts.append(part)
        return parts[0], parts[1]

    def __repr__(self) -> str:
        part = "" if self._part is None else f", part={self._part['number']}"
        return f"RemoteData({self.address!r}, {self.name!r}{part})"

    def __sklearn_clone__(self) -> RemoteData:
        return self


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
    if not given:
        remedy = f"Pass token=, or set {TOKEN_VARIABLE}; the holder issues it."
        raise InputError.expected("a token", of="remote", got=None, remedy=remedy)
    if not dataset or len(dataset) > 63:
        raise InputError.expected(
            "the name of a data set", of="dataset", got=dataset, remedy="Ask the holder."
        )
    if not 0 < timeout < math.inf:
        raise InputError.expected(
            "seconds above 0", of="timeout", got=timeout, remedy="Pass timeout=120.0, for example."
        )
    connection = Connection(url, given, timeout=timeout, cafile=cafile)
    try:
        return RemoteData(connection, dataset, key)
    except BaseException:
        connection.close()
        raise
