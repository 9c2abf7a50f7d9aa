"""Errors of the registry: HTTP status and error code are part of the API."""

from __future__ import annotations

from typing import Final

_PER_STATUS: Final = 100


class InvalidSchema(Exception):
    """A schema cannot be parsed, or its references cannot be resolved."""


class Refusal(Exception):
    """A valid request that is rejected: `code` is the response's error_code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    @property
    def status(self) -> int:
        return self.code // _PER_STATUS if self.code >= 1000 else self.code
