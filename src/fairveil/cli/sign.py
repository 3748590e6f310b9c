"""`fairveil sign`: the data holder stands by a privacy statement, or by a folder with a model, with
a key of her own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

PASSPHRASE_VARIABLE = "FAIRVEIL_KEY_PASSPHRASE"


def sign(
    statement: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="a statement, or a folder that holds one: then its other files are signed, too",
        ),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(
            "--key", metavar="FILE", help="sign with this private key", show_default=False
        ),
    ] = None,
    note: Annotated[
        str | None, typer.Option("--note", metavar="WORDS", help="sign this line of words, too")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="write this file",
            show_default="statement.json.sig beside it",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="replace a signature that is there")
    ] = False,
    inconsistent: Annotated[
        bool, typer.Option("--inconsistent", help="sign a statement that contradicts itself, too")
    ] = False,
    new_key: Annotated[
        Path | None,
        typer.Option(
            "--new-key",
            metavar="FILE",
            help="write a new pair of keys; sign nothing",
            show_default=False,
        ),
    ] = None,
    passphrase: Annotated[
        bool,
        typer.Option(
            "--passphrase",
            help=f"ask for a passphrase of the new key (or read {PASSPHRASE_VARIABLE})",
        ),
    ] = False,
) -> None:
    """Sign a privacy statement with an ed25519 key; `fairveil verify STATEMENT --key holder.pub`
    checks the signature.

    Exit status: 0 signed, 2 refused.
    """
    from ..errors import InputError
    from .options import warnings_as_notes

    if new_key is not None:
        given = [
            name
            for name, value in (
                ("STATEMENT", statement),
                ("--key", key),
                ("--note", note),
                ("--out", out),
            )
            if value
        ]
        if given or force or inconsistent:
            remedy = "Make the key first, and sign with another command."
            raise InputError.expected(
                "--new-key alone", of="sign", got=", ".join(given) or "--force", remedy=remedy
            )
        _make(new_key, asked=passphrase)
        return
    if statement is None or key is None:
        remedy = (
            "fairveil sign statement.json --key holder.key; for a key: fairveil sign --new-key "
            "holder.key."
        )
        got = "none" if statement is None else "a statement alone"
        raise InputError.expected(
            "STATEMENT and --key", of="sign", got=got, remedy=remedy, quote=False
        )
    if passphrase:
        remedy = f"An encrypted key's is asked for by itself, or read from {PASSPHRASE_VARIABLE}."
        raise InputError.expected(
            "--passphrase with --new-key alone", of="sign", got="--key", remedy=remedy
        )
    from ..statement import signing

    with warnings_as_notes():
        made = signing.sign(
            statement,
            key,
            passphrase=asked_passphrase,
            note=note,
            out=out,
            replace=force,
            inconsistent=inconsistent,
        )
    where = signing.signature_path(statement) if out is None else out
    files = "" if made.files is None else f", with {len(made.files)} other files of {statement}"
    typer.echo(f"Signed: {where}{files}")
    typer.echo(f"Signer: {made.signer}")


def _make(path: Path, *, asked: bool) -> None:
    import os

    from ..statement import signing

    word = os.environ.get(PASSPHRASE_VARIABLE) or None
    if asked and word is None:
        word = _asked(f"Passphrase of {path}", twice=True)
    name = signing.new_key(path, passphrase=word)
    typer.echo(
        f"Private key: {path} ({'encrypted' if word else 'not encrypted'}; keep it to yourself, "
        f"and a copy of it safe)"
    )
    typer.echo(f"Public key: {signing.public_path(path)} (for whoever verifies what you sign)")
    typer.echo(f"Fingerprint: {name}")


def asked_passphrase() -> str:
    """Of a key that is encrypted: from the environment, or asked for."""
    import os

    return os.environ.get(PASSPHRASE_VARIABLE) or _asked("Passphrase of the key", twice=False)


def _asked(words: str, *, twice: bool) -> str:
    """From the terminal; without one an error says how else."""
    import sys

    from ..errors import InputError

    if not sys.stdin.isatty():
        remedy = f"Put it into the environment as {PASSPHRASE_VARIABLE}."
        got = "no terminal to ask at"
        raise InputError.expected("a passphrase", of="--key", got=got, remedy=remedy, quote=False)
    return str(typer.prompt(words, hide_input=True, confirmation_prompt=twice, err=True))
