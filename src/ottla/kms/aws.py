"""AWS Key Management Service, through boto3, with the usual AWS region and credentials."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any, Final

from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from ottla.core.keys import EncryptionConfig

_SCHEME: Final = "aws-kms:"
_CONTEXT: Final = {"purpose": "ottla data key"}
"""Encryption context: ciphertext of the same KMS key for other purposes is not accepted as a data key."""


class AwsKms:
    def __init__(self, config: EncryptionConfig) -> None:
        try:
            import boto3
            from botocore.exceptions import BotoCoreError, ClientError
        except ImportError:
            raise ConfigError("keys are wrapped by AWS KMS, which needs boto3: pip install 'ottla[aws]'") from None
        self._key = config.wrapping_key
        self._failures = (BotoCoreError, ClientError)
        try:
            self._client: Any = boto3.client("kms")
        except self._failures as failed:
            raise ConfigError(f"AWS KMS cannot be used: {failed}") from None

    def wrap(self, key: bytes) -> str:
        if not self._key:
            raise ConfigError("keys are wrapped by AWS KMS: set encryption.wrapping_key to a key id, alias or ARN")
        answer = self._ask("encrypt", KeyId=self._key, Plaintext=key)
        return _SCHEME + base64.b64encode(answer["CiphertextBlob"]).decode()

    def unwrap(self, wrapped: str) -> bytes:
        try:
            blob = base64.b64decode(wrapped.removeprefix(_SCHEME), validate=True)
        except binascii.Error:
            raise ConfigError("a key wrapped by AWS KMS is not valid base64") from None
        plaintext: bytes = self._ask("decrypt", CiphertextBlob=blob)["Plaintext"]
        return plaintext

    def _ask(self, verb: str, **given: object) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = getattr(self._client, verb)(EncryptionContext=_CONTEXT, **given)
        except self._failures as failed:
            raise ConfigError(f"AWS KMS refused to {verb}: {failed}") from None
        return answer
