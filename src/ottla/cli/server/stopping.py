"""Waiting for a stop signal."""

from __future__ import annotations

import select
import signal
import socket


class StopSignal:
    """Set by signal handlers, waited for by the main thread.

    Not a threading.Event: a handler interrupts the main thread anywhere, also while that thread holds the event's
    own lock, and would wait for itself.
    """

    def __init__(self) -> None:
        self._reading, self._writing = socket.socketpair()
        self._writing.settimeout(0)

    def set(self) -> None:
        self._writing.send(b"\0")

    def wait(self, timeout_s: float | None = None) -> bool:
        """Whether it was set within this time."""
        return bool(select.select([self._reading], [], [], timeout_s)[0])

    def close(self) -> None:
        self._reading.close()
        self._writing.close()

    def on_first_signal(self) -> None:
        """Be set by the first SIGINT or SIGTERM; the second ends the process at once."""

        def stop(*_: object) -> None:
            self.set()
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, stop)
