"""HashiCorp Vault's transit secrets engine, and OpenBao's, over its HTTP API."""

from __future__ import annotations

import base64
import binascii
import json
import os
import ssl
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from ottla.core.errors import ConfigError
from ottla.core.trusted_http import is_trusted, opener

if TYPE_CHECKING:
    from ottla.core.keys import EncryptionConfig

_TIMEOUT_S: Final = 10.0
_MOST_BYTES: Final = 1 << 16


class VaultTransit:
    def __init__(self, config: EncryptionConfig) -> None:
        self._address = (config.vault_address or os.environ.get("VAULT_ADDR", "")).rstrip("/")
        if not self._address:
            raise ConfigError("keys are wrapped by Vault: set encryption.vault_address or $VAULT_ADDR")
        if not is_trusted(self._address):
            raise ConfigError(f"encryption.vault_address must be an https address, got {self._address!r}")
        self._mount = config.vault_mount
        self._key = config.wrapping_key
        self._token_file = config.vault_token_file
        trust = ssl.create_default_context(cafile=config.vault_ca_file)
        self._opener = opener(urllib.request.HTTPSHandler(context=trust))

    def wrap(self, key: bytes) -> str:
        answer = self._ask("encrypt", {"plaintext": base64.b64encode(key).decode()})
        return str(answer["ciphertext"])

    def unwrap(self, wrapped: str) -> bytes:
        answer = self._ask("decrypt", {"ciphertext": wrapped})
        try:
            return base64.b64decode(answer["plaintext"], validate=True)
        except (KeyError, TypeError, binascii.Error):
            raise ConfigError(f"Vault at {self._address} sent no plaintext") from None

    def _ask(self, verb: str, body: dict[str, str]) -> dict[str, Any]:
        if not self._key:
            raise ConfigError("keys are wrapped by Vault: set encryption.wrapping_key to the name of the transit key")
        path = f"/v1/{quote(self._mount)}/{verb}/{quote(self._key, safe='')}"
        headers = {"x-vault-token": self._token(), "content-type": "application/json"}
        request = urllib.request.Request(self._address + path, json.dumps(body).encode(), headers)  # noqa: S310
        try:
            with self._opener.open(request, timeout=_TIMEOUT_S) as answer:
                data = json.loads(answer.read(_MOST_BYTES))["data"]
        except urllib.error.HTTPError as refused:
            raise ConfigError(f"Vault at {self._address} refused to {verb}: {_errors(refused)}") from None
        except OSError as failed:
            raise ConfigError(f"Vault at {self._address} does not answer: {failed}") from None
        except (ValueError, KeyError, TypeError):
            raise ConfigError(f"{self._address}{path} did not answer like Vault") from None
        if not isinstance(data, dict):
            raise ConfigError(f"{self._address}{path} did not answer like Vault")
        return data

    def _token(self) -> str:
        """The token, read again for each request: an agent may renew the file."""
        if self._token_file is not None:
            try:
                return self._token_file.expanduser().read_text("utf-8").strip()
            except (OSError, UnicodeDecodeError) as failed:
                raise ConfigError(f"encryption.vault_token_file: could not read {self._token_file}: {failed}") from None
        token = os.environ.get("VAULT_TOKEN", "")
        if not token:
            raise ConfigError("keys are wrapped by Vault: set encryption.vault_token_file or $VAULT_TOKEN")
        return token


def _errors(refused: urllib.error.HTTPError) -> str:
    with refused:
        try:
            listed = json.loads(refused.read(_MOST_BYTES))["errors"]
            why = "; ".join(str(one) for one in listed)
        except (OSError, ValueError, KeyError, TypeError):
            why = ""
    return f"{refused.code} {why or refused.reason}"
