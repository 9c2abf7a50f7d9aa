"""Vault's transit secrets engine as its API documents it: tokens, key versions, rotation.

A stand-in: no registry that the tests can reach has Vault itself.
"""

from __future__ import annotations

import base64
import json
import os
import threading
import uuid
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

if TYPE_CHECKING:
    from collections.abc import Iterator

TOKEN = "s.token"  # noqa: S105
KEY = "ottla"


class RefusedError(Exception):
    pass


class Transit(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.versions = [os.urandom(32)]
        self.least_version = 1
        """min_decryption_version of the key."""
        self.is_sealed = False
        self.redirect = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def rotate(self) -> None:
        self.versions.append(os.urandom(32))

    def encrypt(self, body: dict[str, str]) -> dict[str, Any]:
        nonce = os.urandom(12)
        sealed = nonce + AESGCM(self.versions[-1]).encrypt(nonce, base64.b64decode(body["plaintext"]), None)
        version = len(self.versions)
        return {"ciphertext": f"vault:v{version}:{base64.b64encode(sealed).decode()}", "key_version": version}

    def decrypt(self, body: dict[str, str]) -> dict[str, Any]:
        if not body["ciphertext"].startswith("vault:v"):
            raise RefusedError("invalid ciphertext: no prefix")
        _, version, text = body["ciphertext"].split(":", 2)
        if int(version[1:]) < self.least_version:
            raise RefusedError("ciphertext or signature version is disallowed by policy (too old)")
        sealed = base64.b64decode(text)
        plain = AESGCM(self.versions[int(version[1:]) - 1]).decrypt(sealed[:12], sealed[12:], None)
        return {"plaintext": base64.b64encode(plain).decode()}


class _Handler(BaseHTTPRequestHandler):
    server: Transit

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.server.redirect:
            self.send_response(307)
            self.send_header("location", self.server.redirect)
            self.end_headers()
            return
        verbs = {f"/v1/transit/encrypt/{KEY}": self.server.encrypt, f"/v1/transit/decrypt/{KEY}": self.server.decrypt}
        if self.server.is_sealed:
            self._answer(503, {"errors": ["Vault is sealed"]})
        elif self.headers["x-vault-token"] != TOKEN:
            self._answer(403, {"errors": ["permission denied"]})
        elif not self.path.startswith("/v1/transit/"):
            self._answer(
                404, {"errors": [f'no handler for route "{self.path.removeprefix("/v1/")}". route entry not found.']}
            )
        elif self.path not in verbs:
            self._answer(400, {"errors": ["encryption key not found"]})
        else:
            try:
                self._answer(200, _envelope(verbs[self.path](body)))
            except RefusedError as refused:
                self._answer(400, {"errors": [str(refused)]})
            except (InvalidTag, ValueError, IndexError):
                self._answer(400, {"errors": ["cipher: message authentication failed"]})

    def _answer(self, status: int, document: dict[str, Any]) -> None:
        payload = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_: Any) -> None:
        """Discard log messages."""


def _envelope(data: dict[str, Any]) -> dict[str, Any]:
    """The envelope of every Vault response."""
    return {
        "request_id": str(uuid.uuid4()),
        "lease_id": "",
        "renewable": False,
        "lease_duration": 0,
        "data": data,
        "wrap_info": None,
        "warnings": None,
        "auth": None,
        "mount_type": "transit",
    }


@contextmanager
def transit() -> Iterator[Transit]:
    server = Transit()
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    serving.start()
    try:
        yield server
    finally:
        server.shutdown()
        serving.join()
        server.server_close()
