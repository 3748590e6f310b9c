"""The image and the compose file, line by line, without an engine for them: each of their commands
is run here by hand.

`docker build` is run by whoever has docker. What is not run here: the base image, and pip against
its registry.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from doors import free_port, place_in

import fairveil as fv
from fairveil.core.events import Gaussian

ROOT = Path(__file__).parent.parent.parent
PLACE = ROOT / "examples" / "door"
SECONDS = 300


def instructions() -> list[tuple[str, str]]:
    """Those of the Dockerfile, with lines that go on put together."""
    text = (PLACE / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.partition(" ")[0], line.partition(" ")[2].strip()) for line in lines]


def the(kind: str) -> str:
    """The one instruction of a kind."""
    (found,) = [rest for name, rest in instructions() if name == kind]
    return found


@pytest.fixture(scope="module")
def compose() -> Any:
    yaml = pytest.importorskip("yaml", reason="PyYAML reads the compose file")
    return yaml.safe_load((PLACE / "compose.yaml").read_text("utf-8"))


def environment(**more: str) -> dict[str, str]:
    """Commands of this environment come first on the path."""
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", **more}


def done(command: list[str], **how: Any) -> str:
    """What a command prints; it has to succeed."""
    found = subprocess.run(
        command, capture_output=True, text=True, timeout=SECONDS, check=False, **how
    )
    assert found.returncode == 0, (command, found.stdout, found.stderr)
    return found.stdout


def test_all_that_is_copied_is_there_and_every_instruction_is_known() -> None:
    known = {"FROM", "WORKDIR", "COPY", "RUN", "USER", "EXPOSE", "HEALTHCHECK", "CMD"}
    assert {name for name, _ in instructions()} == known
    for name, rest in instructions():
        if name == "COPY":
            assert all((ROOT / source).exists() for source in rest.split()[:-1]), rest
    image = the("FROM").removeprefix("python:").removesuffix("-slim")
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
        "requires-python"
    ]
    assert tuple(map(int, image.split("."))) >= tuple(map(int, re.findall(r"\d+", wanted)))


def test_the_command_serves_and_its_health_is_seen(tmp_path: Path) -> None:
    place, port = place_in(tmp_path), free_port()
    command, health = json.loads(the("CMD")), the("HEALTHCHECK")
    exposed = the("EXPOSE")
    assert f"127.0.0.1:{exposed}/healthz" in health
    place.config.write_text(place.config.read_text().replace("port = 0", f"port = {port}"))
    check = health.partition("CMD ")[2].replace(exposed, str(port))
    where: dict[str, Any] = {"cwd": tmp_path, "env": environment()}
    before = subprocess.run(
        ["sh", "-c", check], capture_output=True, timeout=SECONDS, check=False, **where
    )
    assert before.returncode != 0, "nobody answers yet"
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **where
    ) as server:
        try:
            assert server.stdout is not None
            assert str(port) in next(line for line in server.stdout if "http://" in line)
            done(["sh", "-c", check], **where)
        finally:
            server.terminate()


def test_the_services_of_the_compose_file_fit_each_other(
    compose: Any, postgres: Any, tmp_path: Path
) -> None:
    """Its database, its password file, the ledger that its head begins, and a door that is charged
    there."""
    budget, door = compose["services"]["budget"], compose["services"]["door"]
    assert (PLACE / door["build"]["context"]).resolve() == ROOT
    assert (ROOT / door["build"]["dockerfile"]).is_file()
    assert door["depends_on"]["budget"]["condition"] == "service_healthy"
    assert door["ports"] == [f"127.0.0.1:{the('EXPOSE')}:{the('EXPOSE')}"]
    assert set(budget["secrets"]) | set(door["secrets"]) == set(compose["secrets"])
    at, programs = urlsplit(postgres.url), Path(postgres.control[0]).parent
    user, base = budget["environment"]["POSTGRES_USER"], budget["environment"]["POSTGRES_DB"]
    sql = f"CREATE ROLE {user} LOGIN CREATEDB PASSWORD 'a b:c'; CREATE DATABASE {base} OWNER {user}"
    for one in sql.split("; "):
        done([str(programs / "psql"), postgres.url, "-v", "ON_ERROR_STOP=1", "-c", one])
    kind, *test = budget["healthcheck"]["test"]
    assert kind == "CMD"
    done([str(programs / test[0]), *test[1:], "-h", "127.0.0.1", "-p", str(at.port)])

    secrets = tmp_path / "pgpass"
    secrets.write_text(f"127.0.0.1:{at.port}:*:{user}:a b\\:c\n")
    secrets.chmod(0o600)
    assert list(door["environment"]) == ["PGPASSFILE"]
    env = environment(PGPASSFILE=str(secrets))
    head = (PLACE / "compose.yaml").read_text("utf-8").replace("\\\n#", " ")
    line = re.search(r"docker compose run --rm door (fairveil ledger create .*)", head)
    assert line is not None
    here = lambda text: text.replace("@budget/", f"@127.0.0.1:{at.port}/")  # noqa: E731  # the service's name in its network
    done(shlex.split(here(line[1])), cwd=tmp_path, env=env)
    place = place_in(tmp_path / "holder", seeded=False)
    url = re.search(r'ledger = "(postgresql://[^"]*)"', head)
    assert url is not None
    place.config.write_text(place.config.read_text().replace('"budget.db"', f'"{here(url[1])}"'))
    checked = [*json.loads(the("CMD")), "--check"]
    assert "Would serve: applicants" in done(checked, cwd=place.folder, env=env)

    page = (ROOT / "docs" / "serving.md").read_text("utf-8")
    block = re.search(r"```sh\n(pg_dump.*?)```", page, re.DOTALL)
    assert block is not None
    known = here(url[1]).replace(f"{user}@", f"{user}:a%20b%3Ac@")
    ledger = fv.Ledger.open(known, "applicants")
    with ledger.reserve(Gaussian(20.0), purpose="before the copy"):
        pass
    for command in block[1].splitlines():
        words = shlex.split(here(command))
        name = shutil.which(words[0], path=f"{programs}:{env['PATH']}")
        done([str(name), *words[1:]], cwd=tmp_path, env=env)
    restored = fv.Ledger.open(f"{known.removesuffix(base)}restored", "applicants")
    assert restored.balance() == ledger.balance()
    assert [line.to_dict() for line in restored.history()] == [
        line.to_dict() for line in ledger.history()
    ]
    with restored.reserve(Gaussian(20.0), purpose="after it"):
        pass
    for one in (ledger, restored):
        one.close()
