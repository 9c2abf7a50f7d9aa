"""Loads the JWKS: from a file, which is reloaded when it changes, or from an https URL, which is polled."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ottla.core.errors import ConfigError
from ottla.core.security import LoginFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.net.sasl.signatures import Keys

_logger: Final = logging.getLogger(__name__)

_ASK_AGAIN_S: Final = 300.0
_RETRY_S: Final = 10.0
_PATIENCE_S: Final = 10.0
_MOST_BYTES: Final = 1 << 20


class KeySource:
    """Used by threads that verify tokens: one of them loads the keys, the others wait."""

    def __init__(self, where: str, now_s: Callable[[], float] = time.monotonic) -> None:
        self._where = where
        self._now_s = now_s
        self._keys: Keys | None = None
        self._stamp: tuple[int, int] | None = None
        self._look_again_s = 0.0
        self._lock = threading.Lock()

    def check(self) -> None:
        """Raises ConfigError if a file cannot be used; a URL may be temporarily unreachable."""
        if not self._is_address:
            try:
                self()
            except LoginFailed as unusable:
                raise ConfigError(f"security.oauth_jwks: {unusable}") from None

    def __call__(self) -> Keys:
        with self._lock:
            if self._is_address:
                self._ask_if_due()
            else:
                self._read_if_changed()
            if self._keys is None:
                raise LoginFailed(f"no keys to verify tokens: could not load the JWKS from {self._where}")
            return self._keys

    @property
    def _is_address(self) -> bool:
        return self._where.startswith("https://")

    def _read_if_changed(self) -> None:
        try:
            found = Path(self._where).stat()
            stamp = found.st_mtime_ns, found.st_size
            if stamp != self._stamp:
                self._stamp = stamp
                self._keys = _keys(Path(self._where).read_bytes())
        except (OSError, ValueError, KeyError, TypeError) as unusable:
            _logger.error("could not load the JWKS from %s: %s", self._where, unusable)

    def _ask_if_due(self) -> None:
        if self._now_s() < self._look_again_s:
            return
        from ottla.core.trusted_http import opener  # imported lazily

        try:
            with opener().open(self._where, timeout=_PATIENCE_S) as answer:
                self._keys = _keys(answer.read(_MOST_BYTES))
        except (OSError, ValueError, KeyError, TypeError) as unusable:
            _logger.error("could not load the JWKS from %s: %s", self._where, unusable)
            self._look_again_s = self._now_s() + _RETRY_S
        else:
            self._look_again_s = self._now_s() + _ASK_AGAIN_S


def _keys(document: bytes) -> Keys:
    try:
        from ottla.net.sasl.signatures import Keys
    except ImportError:
        raise ConfigError("OAUTHBEARER needs the package cryptography: pip install 'ottla[security]'") from None
    return Keys(document)
