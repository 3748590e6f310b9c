"""HTTPS by certificate files, with certificates made here; what a client does not trust is refused,
before a token is sent."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import sys
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from doors import Place, place_in, served

import fairveil as fv
import ways
from fairveil.cli import main
from fairveil.errors import DoorError

NOW, DAY = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)


class Authority:
    """Signs certificates of servers; `pem`: its own."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._key = folder, ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        made = self._begun(self._name, self._key.public_key(), NOW + 10 * DAY)
        made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        made = made.add_extension(
            x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False
        )
        self.pem = folder / f"{name}.pem"
        self.pem.write_bytes(
            made.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        )

    def signed(
        self, name: str, *, host: Any = None, until: datetime.datetime = NOW + 5 * DAY
    ) -> tuple[Path, Path]:
        """The files of a server's certificate and key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        names = x509.SubjectAlternativeName(
            [host or x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        )
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        made = self._begun(subject, key.public_key(), until).add_extension(names, critical=False)
        made = made.add_extension(issuer, critical=False)
        certificate, private = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        certificate.write_bytes(
            made.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        )
        plain = (
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        private.write_bytes(key.private_bytes(*plain))
        return certificate, private

    def _begun(
        self, subject: x509.Name, key: Any, until: datetime.datetime
    ) -> x509.CertificateBuilder:
        begun = (
            x509.CertificateBuilder().subject_name(subject).issuer_name(self._name).public_key(key)
        )
        begun = begun.serial_number(x509.random_serial_number())
        return begun.not_valid_before(NOW - 8 * DAY).not_valid_after(until)


def with_files(place: Place, files: tuple[Path, Path]) -> Place:
    """The place, which serves by these files from now on."""
    lines = place.config.read_text().splitlines(keepends=True)
    text = "".join(line for line in lines if not line.startswith(("certificate", "private_key")))
    told = f'[door]\ncertificate = "{files[0]}"\nprivate_key = "{files[1]}"\n'
    place.config.write_text(text.replace("[door]\n", told))
    return place


def test_what_is_not_trusted_is_refused_before_the_token_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another authority, another name, one that expired; and plain words to a port that speaks
    TLS."""
    monkeypatch.setattr("fairveil.serving.client.WAIT", 0.001)
    authority, other = Authority(tmp_path, "authority"), Authority(tmp_path, "other")
    place = place_in(tmp_path / "holder", seeded=False)
    elsewhere, expired = {"host": x509.DNSName("holder.example")}, {"until": NOW - 2 * DAY}
    for how, trusted in ((elsewhere, False), (expired, False), ({}, True)):
        with served(with_files(place, authority.signed("server", **how))) as (door, url):
            token = door.tokens.issue("analyst")
            for cafile in (None, str(other.pem), str(authority.pem)):
                if trusted and cafile == str(authority.pem):
                    data = fv.remote(url, "applicants", token=token, cafile=cafile)
                    assert ways.fermi(solver=fv.PrimalDual(rounds=3)).fit(data).privacy_.ledger
                    data.close()
                    continue
                with pytest.raises(DoorError, match="a certificate that is not to be trusted"):
                    fv.remote(url, "applicants", token=token, cafile=cafile)
            with pytest.raises(DoorError):
                fv.remote(url.replace("https", "http"), "applicants", token=token)
    old = ssl.create_default_context(cafile=str(authority.pem))
    assert old.minimum_version >= ssl.TLSVersion.TLSv1_2


def test_a_certificate_that_cannot_be_served_with_is_told_before_the_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = place_in(tmp_path / "holder")
    words = ["fairveil", "serve", "--check", "--config", str(place.config)]
    monkeypatch.setattr(sys, "argv", words)
    maker = Authority(tmp_path, "maker")
    (certificate, key), (_, others) = maker.signed("server"), maker.signed("other")
    locked = tmp_path / "locked.key"
    secret = serialization.BestAvailableEncryption(b"secret")
    loaded = serialization.load_pem_private_key(key.read_bytes(), None)
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    locked.write_bytes(loaded.private_bytes(pem, pkcs8, secret))  # type: ignore[union-attr]
    plain = place.config.read_text()
    for files, cause in (
        ((tmp_path / "none.pem", key), "no file none.pem"),
        ((certificate, tmp_path / "none.key"), "no file none.key"),
        ((certificate, others), "KEY_VALUES_MISMATCH"),
        ((key, certificate), "got"),
        ((certificate, locked), "got"),
    ):
        place.config.write_text(plain)
        with_files(place, files)
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 2
        said = capsys.readouterr()
        for words_said in ("a certificate and its own key", cause):
            assert words_said in " ".join(said.err.split())
        assert "Would serve" not in said.out
    assert not (place.folder / "door").exists()
    place.config.write_text(plain)
    with_files(place, (certificate, key))
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert "Would serve: applicants" in capsys.readouterr().out
