"""Errors of serializers and of the registry's client."""

from __future__ import annotations

from ottla.core.errors import OttlaError


class SchemaError(OttlaError):
    """A value does not match its schema, or a schema cannot be used."""


class RegistryUnavailable(OttlaError):
    """The registry does not respond, or reports that it is temporarily unavailable."""

    is_retriable = True


class RegistryRefused(OttlaError):
    """The registry returned an error; `code` is its error_code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
