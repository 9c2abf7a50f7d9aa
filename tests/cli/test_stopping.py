import signal
import sys
from collections.abc import Iterator
from types import FrameType

import pytest

from ottla.cli.server.stopping import StopSignal

PATIENCE_S = 30.0


@pytest.fixture
def stopping() -> Iterator[StopSignal]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)}
    stop = StopSignal()
    yield stop
    stop.close()
    for number, handler in before.items():
        signal.signal(number, handler)


def test_it_is_not_set_without_a_signal(stopping: StopSignal) -> None:
    assert not stopping.wait(0)


def test_a_signal_at_any_line_of_wait_ends_it(stopping: StopSignal) -> None:
    """A threading.Event hangs here: its lock is taken in the middle of `wait`."""
    signal.signal(signal.SIGUSR1, lambda *_: stopping.set())
    lines = 0

    def at_line(_frame: FrameType, event: str, _arg: object) -> object:
        nonlocal lines
        if event == "line":
            lines += 1
            signal.raise_signal(signal.SIGUSR1)
        return at_line

    tracing = sys.gettrace()
    sys.settrace(at_line)
    try:
        is_set = stopping.wait(PATIENCE_S)
    finally:
        sys.settrace(tracing)
    assert is_set
    assert lines


def test_the_first_signal_sets_it_and_the_second_ends_the_process(stopping: StopSignal) -> None:
    stopping.on_first_signal()
    signal.raise_signal(signal.SIGTERM)
    assert stopping.wait(PATIENCE_S)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
