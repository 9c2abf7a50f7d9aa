"""Google Cloud Key Management Service, through its SDK, with application default credentials."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Final

from ottla.core.errors import ConfigError
from ottla.records.checksum import crc32c

if TYPE_CHECKING:
    from google.cloud.kms import DecryptResponse, EncryptResponse, KeyManagementServiceClient

    from ottla.core.keys import EncryptionConfig

_SCHEME: Final = "gcp-kms:"
_PURPOSE: Final = b"ottla data key"
"""Authenticated data: ciphertext of the same KMS key for other purposes is not accepted as a data key."""
_TIMEOUT_S: Final = 10.0


class GcpKms:
    """A wrapped key includes the name of its KMS key, which the SDK needs to unwrap it."""

    def __init__(self, config: EncryptionConfig, client: KeyManagementServiceClient | None = None) -> None:
        try:
            from google.api_core.exceptions import GoogleAPICallError, RetryError
            from google.auth.exceptions import GoogleAuthError
            from google.cloud import kms
        except ImportError:
            raise ConfigError(
                "keys are wrapped by Google Cloud KMS, which needs google-cloud-kms: pip install 'ottla[gcp]'"
            ) from None
        self._key = config.wrapping_key
        self._failures = (GoogleAPICallError, RetryError, GoogleAuthError)
        try:
            self._client = client or kms.KeyManagementServiceClient()
        except GoogleAuthError as failed:
            raise ConfigError(f"Google Cloud KMS cannot be used: {failed}") from None

    def wrap(self, key: bytes) -> str:
        if not self._key:
            raise ConfigError(
                "keys are wrapped by Google Cloud KMS: set encryption.wrapping_key to "
                "projects/PROJECT/locations/LOCATION/keyRings/RING/cryptoKeys/KEY"
            )
        answer = self._ask("encrypt", name=self._key, plaintext=key, plaintext_crc32c=crc32c(key))
        if not answer.verified_plaintext_crc32c or answer.ciphertext_crc32c != crc32c(answer.ciphertext):
            raise ConfigError("Google Cloud KMS: the key was corrupted on its way; try again")
        return f"{_SCHEME}{self._key}:{base64.b64encode(answer.ciphertext).decode()}"

    def unwrap(self, wrapped: str) -> bytes:
        name, _, text = wrapped.removeprefix(_SCHEME).rpartition(":")
        try:
            ciphertext = base64.b64decode(text, validate=True)
        except binascii.Error:
            raise ConfigError("a key wrapped by Google Cloud KMS is not valid base64") from None
        answer = self._ask("decrypt", name=name, ciphertext=ciphertext, ciphertext_crc32c=crc32c(ciphertext))
        plaintext: bytes = answer.plaintext
        if answer.plaintext_crc32c != crc32c(plaintext):
            raise ConfigError("Google Cloud KMS: the key was corrupted on its way; try again")
        return plaintext

    def _ask(self, verb: str, **given: object) -> EncryptResponse | DecryptResponse:
        request = {**given, "additional_authenticated_data": _PURPOSE}
        request["additional_authenticated_data_crc32c"] = crc32c(_PURPOSE)
        try:
            return getattr(self._client, verb)(request=request, timeout=_TIMEOUT_S)
        except self._failures as failed:
            raise ConfigError(f"Google Cloud KMS refused to {verb}: {failed}") from None
