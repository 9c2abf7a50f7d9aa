"""Wrapped keys, and the services that wrap them.

In a key file a wrapped key is `SCHEME:TEXT` in place of hexadecimal digits. The scheme names the service.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from ottla.core.keys import EncryptionConfig


class Wrapper(Protocol):
    """A service that encrypts and decrypts data keys with a key that never leaves it. Its calls block."""

    def wrap(self, key: bytes) -> str:
        """The key as the service's ciphertext, with the scheme in front."""

    def unwrap(self, wrapped: str) -> bytes:
        """Decrypt a wrapped key; raises ConfigError with the reason if the service does not."""


def wrapper_for(scheme: str, config: EncryptionConfig) -> Wrapper:
    if scheme == "vault":
        from ottla.kms.vault import VaultTransit

        return VaultTransit(config)
    if scheme == "aws-kms":
        from ottla.kms.aws import AwsKms

        return AwsKms(config)
    if scheme == "gcp-kms":
        from ottla.kms.gcp import GcpKms

        return GcpKms(config)
    raise ConfigError(f"keys wrapped by {scheme!r} are not supported, only by vault, aws-kms and gcp-kms")


class Unwrapper:
    """Unwraps keys of any scheme; the client of each service is created once."""

    def __init__(self, config: EncryptionConfig) -> None:
        self._config = config
        self._wrappers: dict[str, Wrapper] = {}

    def __call__(self, wrapped: str) -> bytes:
        scheme = wrapped.partition(":")[0]
        if scheme not in self._wrappers:
            self._wrappers[scheme] = wrapper_for(scheme, self._config)
        return self._wrappers[scheme].unwrap(wrapped)
