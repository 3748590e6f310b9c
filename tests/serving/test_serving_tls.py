"""HTTPS, as a proxy in front speaks it, with certificates made here: what a client does not trust is
refused, before a token is sent."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import fairveil as fv
from fairveil.errors import DoorError

NOW, DAY = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
HERE = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))


def certificate(folder: Path, name: str, host: Any = HERE, days: int = 5) -> Path:
    """A certificate that signed itself, and its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    made = x509.CertificateBuilder().subject_name(subject).issuer_name(subject)
    made = made.public_key(key.public_key()).serial_number(x509.random_serial_number())
    made = made.not_valid_before(NOW - 8 * DAY).not_valid_after(NOW + days * DAY)
    made = made.add_extension(x509.SubjectAlternativeName([host]), critical=False)
    pem, none = serialization.Encoding.PEM, serialization.NoEncryption()
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, none)
    path = folder / f"{name}.pem"
    path.write_bytes(made.sign(key, hashes.SHA256()).public_bytes(pem) + private)
    return path


@contextmanager
def speaking(file: Path) -> Iterator[tuple[str, list[str]]]:
    """A server that says no to all; its address, and the tokens that it was shown."""
    seen: list[str] = []

    class Deaf(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers["Authorization"])
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    with HTTPServer(("127.0.0.1", 0), Deaf) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"https://127.0.0.1:{server.server_port}", seen
        finally:
            server.shutdown()
            thread.join()


def test_what_is_not_trusted_is_refused_before_the_token_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another authority, another name, one that expired."""
    monkeypatch.setattr("fairveil.serving.client.WAIT", 0.001)
    right, other = certificate(tmp_path, "right"), certificate(tmp_path, "other")
    expired = certificate(tmp_path, "expired", days=-2)
    elsewhere = certificate(tmp_path, "elsewhere", x509.DNSName("holder.example"))
    for file, trusted in (
        (right, None),
        (right, other),
        (expired, expired),
        (elsewhere, elsewhere),
    ):
        with speaking(file) as (url, seen):
            with pytest.raises(DoorError, match="a certificate that is not to be trusted"):
                fv.remote(url, "applicants", token="fv_x", cafile=str(trusted) if trusted else None)
            assert seen == []
    with speaking(right) as (url, seen):
        with pytest.raises(DoorError, match="status 404"):
            fv.remote(url, "applicants", token="fv_x", cafile=str(right))
        assert seen == ["Bearer fv_x"]
