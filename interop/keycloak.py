"""Keycloak, an OpenID Connect provider, on a free port of this machine."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
import zipfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx

from interop.kafka_artifacts import CACHE, FETCH_TIMEOUT_S, ToolMissingError, only_one_process

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VERSION = "26.4.5"
REALM = "shop"
CLIENT_ID, CLIENT_SECRET = "ottla", "a secret of the client"
ADMIN, ADMIN_PASSWORD = "operator", "operator-secret"
PASSWORDS = {"ann": "ann-secret", "bob": "bob-secret"}
START_TIMEOUT_S = 900


class Keycloak:
    def __init__(self, url: str) -> None:
        self.url = url
        self.issuer = f"{url}/realms/{REALM}"

    def admin(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 - as the API says
        """Ask the admin API about the realm; without a path about all realms."""
        form = {"client_id": "admin-cli", "grant_type": "password", "username": ADMIN, "password": ADMIN_PASSWORD}
        token = httpx.post(f"{self.url}/realms/master/protocol/openid-connect/token", data=form, timeout=60)
        headers = {"authorization": f"Bearer {token.raise_for_status().json()['access_token']}"}
        address = f"{self.url}/admin/realms" + (f"/{REALM}{path}" if path else "")
        answer = httpx.request(method, address, json=body, headers=headers, timeout=60).raise_for_status()
        return answer.json() if answer.content else None

    def user_id(self, name: str) -> str:
        [found] = self.admin("GET", f"/users?username={name}&exact=true")
        return str(found["id"])


@contextmanager
def keycloak(folder: Path, console: str) -> Iterator[Keycloak]:
    """With a realm for a console at this address."""
    home = _distribution()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = [f"--http-port={port}", "--http-host=127.0.0.1", "--http-enabled=true", "--hostname-strict=false"]
    environment = {
        "KC_BOOTSTRAP_ADMIN_USERNAME": ADMIN,
        "KC_BOOTSTRAP_ADMIN_PASSWORD": ADMIN_PASSWORD,
        # It lives for a minute: optimizing its code would take longer than running it.
        "JAVA_OPTS_APPEND": "-XX:TieredStopAtLevel=1",
    }
    with (folder / "keycloak.log").open("wb") as told:
        process = subprocess.Popen(
            [str(home / "bin" / "kc.sh"), "start", "--optimized", "--cache=local", *options],
            stdin=subprocess.DEVNULL,
            stdout=told,
            stderr=told,
            env={**os.environ, **environment},
            start_new_session=True,
        )
    try:
        started = Keycloak(f"http://127.0.0.1:{port}")
        _wait_until_ready(process, started, folder / "keycloak.log")
        started.admin("POST", "", _realm(console))
        yield started
    finally:
        # The script waits for Java, and both are in a separate process group.
        os.killpg(process.pid, 9)
        process.wait()


def _wait_until_ready(process: subprocess.Popen[bytes], started: Keycloak, log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            if httpx.get(f"{started.url}/realms/master", timeout=5).status_code == 200:
                return
        except httpx.HTTPError:
            pass
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"Keycloak did not start: {log.read_text()[-2000:]}")
        time.sleep(0.2)


def _distribution() -> Path:
    home = CACHE / f"keycloak-{VERSION}"
    if not home.is_dir():
        with only_one_process():
            if not home.is_dir():
                _fetch(home)
    return home


def _fetch(home: Path) -> None:
    mvn = shutil.which("mvn")
    if mvn is None or shutil.which("java") is None:
        raise ToolMissingError("Keycloak needs Java and Maven.")
    partial = CACHE / "keycloak-partial"
    shutil.rmtree(partial, ignore_errors=True)
    artifact = f"org.keycloak:keycloak-quarkus-dist:{VERSION}:zip"
    copy = [mvn, "-B", "-ntp", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={partial}"]
    _run(copy)
    [archive] = partial.glob("*.zip")
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(partial)
    archive.unlink()
    unpacked = partial / f"keycloak-{VERSION}"
    (unpacked / "bin" / "kc.sh").chmod(0o755)
    # Once: it takes a minute, and every start would do it again.
    _run([str(unpacked / "bin" / "kc.sh"), "build", "--db=dev-mem"])
    unpacked.rename(home)
    shutil.rmtree(partial)


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} failed: {done.stdout[-1000:]} {done.stderr[-1000:]}")


def _realm(console: str) -> dict[str, object]:
    groups = {
        "name": "groups",
        "protocol": "openid-connect",
        "protocolMapper": "oidc-group-membership-mapper",
        "config": {
            "claim.name": "groups",
            "full.path": "false",
            "id.token.claim": "true",
            "access.token.claim": "true",
        },
    }
    client = {
        "clientId": CLIENT_ID,
        "secret": CLIENT_SECRET,
        "standardFlowEnabled": True,
        "redirectUris": [f"{console}/v1/session/oidc/callback"],
        "attributes": {
            "pkce.code.challenge.method": "S256",
            "backchannel.logout.url": f"{console}/v1/session/oidc/logout",
            "backchannel.logout.session.required": "true",
            "post.logout.redirect.uris": f"{console}/*",
        },
        "protocolMappers": [groups],
    }
    users = [
        {
            "username": name,
            "enabled": True,
            "email": f"{name}@shop.example",
            "emailVerified": True,
            "firstName": name,
            "lastName": name,
            "groups": ["/sales"] if name == "ann" else [],
            "credentials": [{"type": "password", "value": password, "temporary": False}],
        }
        for name, password in PASSWORDS.items()
    ]
    return {
        "realm": REALM,
        "enabled": True,
        "sslRequired": "none",
        "groups": [{"name": "sales"}],
        "clients": [client],
        "users": users,
    }
