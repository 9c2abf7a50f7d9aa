"""The messages in files or standard input, for `ottla produce`."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, BinaryIO, Final

import click

from ottla.cli.messages.lines import FORMATS_IN, Message
from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ottla.cli.messages.schemas import Encoding

WHOLE: Final = "whole"


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    files: tuple[Path, ...]
    format: str
    separator: bytes
    defaults: Message
    encode: Encoding | None
    standard_input: BinaryIO
    """Read if there are no files."""

    def messages(self) -> Iterator[Message]:
        """All messages, with defaults and encoded; ConfigError names the file and line of an invalid one."""
        with ExitStack() as stack:
            advance = _progress(stack, self.files)
            for file in self.files or (None,):
                yield from self._messages_of(file, advance)

    def _messages_of(self, file: Path | None, advance: Callable[[int], None]) -> Iterator[Message]:
        if self.format == WHOLE:
            content = self.standard_input.read() if file is None else file.read_bytes()
            advance(len(content))
            yield self._complete(Message(value=content))
            return
        read = FORMATS_IN[self.format]
        with ExitStack() as stack:
            lines = self.standard_input if file is None else stack.enter_context(file.open("rb"))
            for number, line in enumerate(lines, 1):
                advance(len(line))
                try:
                    message = self._complete(read(line.rstrip(b"\r\n"), self.separator))
                except ConfigError as wrong:
                    raise ConfigError(f"{file or 'standard input'}, line {number}: {wrong}") from None
                yield message

    def _complete(self, message: Message) -> Message:
        """With the defaults, and encoded by its schemas."""
        message = _with_defaults(message, self.defaults)
        return message if self.encode is None else self.encode(message)


def _progress(stack: ExitStack, files: tuple[Path, ...]) -> Callable[[int], None]:
    """A progress bar on a terminal if the total is known."""
    if not files or not sys.stderr.isatty():
        return lambda _: None
    length = sum(file.stat().st_size for file in files)
    bar = stack.enter_context(click.progressbar(length=length, file=sys.stderr, update_min_steps=1 << 16))
    return bar.update


def _with_defaults(message: Message, defaults: Message) -> Message:
    if defaults.key is None and defaults.partition is None and not defaults.headers:
        return message
    return replace(
        message,
        key=defaults.key if message.key is None else message.key,
        partition=defaults.partition if message.partition is None else message.partition,
        headers=message.headers + defaults.headers,
    )
