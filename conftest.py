"""A server of PostgreSQL, for whatever test asks for one."""

from __future__ import annotations

import fcntl
import os
import re
import shlex
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest_plugins = ["browsing"]  # tests/browsing.py
INSTALL_SECONDS = 600
_SILENT: Any = {
    "stdin": subprocess.DEVNULL,
    "stdout": subprocess.DEVNULL,
    "stderr": subprocess.DEVNULL,
}


@dataclass(frozen=True)
class Postgres:
    """A server: its address, and the command that stops and starts it again on the same port."""

    url: str
    control: list[str]
    how: Any

    def stop(self) -> None:
        """As a crash of its machine would."""
        subprocess.run([*self.control, "-m", "immediate", "stop"], **self.how)

    def start(self) -> None:
        """On the same port, with the same options."""
        options = (Path(self.control[2]).parent / "options").read_text()
        subprocess.run([*self.control, "-o", options, "start"], **self.how)


@pytest.fixture(scope="session")
def postgres_url(postgres: Postgres) -> str:
    """The address of a PostgreSQL server of its own. The password holds an @."""
    return postgres.url


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    """A PostgreSQL server of its own, on a loopback port, which ends with the tests. Whoever stops
    it starts it again."""
    programs = _postgres_programs(tmp_path_factory.getbasetemp().parent)
    # Not in pytest's folder: that is its user's alone, and PostgreSQL has to run as another user
    # where ours is the superuser.
    folder = Path(tempfile.mkdtemp(prefix="fairveil-postgres-"))
    try:
        yield from _served(programs, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # what is left, where it did not start


def _served(programs: Path, folder: Path) -> Iterator[Postgres]:
    data, password = folder / "data", folder / "password"
    password.write_text("s3cret@word")
    run: Any = {
        "check": True,
        "capture_output": True,
        "timeout": 600,
        "cwd": folder,
        **_postgres_account(folder),
    }
    settings = [
        "-U",
        "me",
        "--auth=scram-sha-256",
        f"--pwfile={password}",
        "--no-sync",
        "--encoding=UTF8",
        "--no-locale",
    ]
    subprocess.run([programs / "initdb", "-D", data, *settings], **run)
    control = [str(programs / "pg_ctl"), "-D", str(data), "-w", "-l", str(folder / "log")]
    # With pipes of its own the server would hold ours open.
    quiet = {**run, **_SILENT, "capture_output": False}
    port = _start(control, folder, quiet)
    # Stops the server when its standard input ends: here, or where these tests are killed.
    stop = shlex.join([*control, "-m", "immediate", "stop"])
    ending = ["sh", "-c", f"cat; {stop}; rm -rf {shlex.quote(str(folder))}"]
    own = {name: value for name, value in quiet.items() if name in ("user", "stdout", "stderr")}
    with subprocess.Popen(ending, stdin=subprocess.PIPE, cwd="/", start_new_session=True, **own):
        yield Postgres(f"postgresql://me:s3cret%40word@127.0.0.1:{port}/postgres", control, quiet)


def _start(control: list[str], folder: Path, quiet: Any) -> int:
    for attempt in range(3):
        port = _free_port()
        options = (
            f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c "
            f"fsync=off"
        )
        try:
            subprocess.run([*control, "-o", options, "start"], **quiet)
            (folder / "options").write_text(options)
            return port
        except subprocess.CalledProcessError:  # somebody else took the port meanwhile, perhaps
            if attempt == 2:
                pytest.fail(f"PostgreSQL does not start: {(folder / 'log').read_text()[-2000:]}")
    raise AssertionError


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _postgres_programs(shared: Path) -> Path:
    """The folder of initdb; installed once where that is possible."""
    found = _found_programs()
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        with (shared / "postgres.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # workers side by side
            found = _found_programs() or _installed_programs(shared / "postgres.tried")
    if found is None:
        pytest.skip(
            "no PostgreSQL programs (initdb) are installed, and they cannot be installed here"
        )
    return found


def _found_programs() -> Path | None:
    on_path = shutil.which("initdb")
    if on_path is not None:
        return Path(on_path).resolve().parent
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"),
        key=lambda path: int(re.sub(r"\D", "", path.parts[4]) or 0),
    )
    return found[-1].parent if found else None


def _installed_programs(tried: Path) -> Path | None:
    if tried.exists():
        return None
    tried.touch()
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    command = (
        "apt-get install -y postgresql || { apt-get update && apt-get install -y postgresql; }"
    )
    try:
        # No pipes: what it started may outlive it, and would hold them open.
        subprocess.run(
            ["sh", "-c", command], **_SILENT, check=True, timeout=INSTALL_SECONDS, env=environment
        )
    except (subprocess.SubprocessError, OSError):
        return None
    return _found_programs()


def _postgres_account(folder: Path) -> dict[str, str]:
    """PostgreSQL refuses to run for the superuser: then it runs as its own account."""
    if os.geteuid() != 0:
        return {}
    try:
        shutil.chown(folder, "postgres")
    except LookupError:
        pytest.skip("no account to run PostgreSQL as")
    return {"user": "postgres"}
