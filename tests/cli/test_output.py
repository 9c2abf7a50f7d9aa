from __future__ import annotations

import io

import pytest

from ottla.cli.output import is_coloured, painted, terminal_width


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environment", "expected"),
    [
        (Terminal(), {}, True),
        (Terminal(), {"NO_COLOR": ""}, True),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {}, False),
    ],
)
def test_colours_are_used_on_terminals_unless_disabled(
    stream: io.StringIO, environment: dict[str, str], *, expected: bool
) -> None:
    assert is_coloured(stream, environment) is expected


def test_text_is_coloured_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert painted("x", Terminal(), fg="red") == "\x1b[31mx\x1b[0m"
    assert painted("x", io.StringIO(), fg="red") == "x"


def test_only_a_terminal_has_a_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "77")
    assert terminal_width(Terminal()) == 77
    assert terminal_width(io.StringIO()) is None
