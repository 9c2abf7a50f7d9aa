"""Errors of group requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.core.errors import LONGEST_MESSAGE

if TYPE_CHECKING:
    from ottla.core.errors import ErrorCode


class Refused(Exception):
    """Raised before anything is changed; the response has this error code."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = None if message is None else message[:LONGEST_MESSAGE]
