"""Subjects and their contexts: `:.context:subject`, or a plain subject in the default context."""

from __future__ import annotations

from typing import Final, NamedTuple

DEFAULT_CONTEXT: Final = "."
GLOBAL_CONTEXT: Final = ".__GLOBAL"
ALL_CONTEXTS: Final = ":*:"
_PREFIX: Final = ":."


class Subject(NamedTuple):
    context: str
    name: str
    """The name; empty for the context itself."""

    @property
    def qualified(self) -> str:
        return f"{prefix_of(self.context)}{self.name}"

    @property
    def is_context(self) -> bool:
        return not self.name and self.context != DEFAULT_CONTEXT


def prefix_of(context: str) -> str:
    """The prefix of the qualified subjects of a context."""
    return "" if context == DEFAULT_CONTEXT else f":{context}:"


def parse_subject(text: str) -> Subject:
    if text.startswith(ALL_CONTEXTS):
        return Subject("*", text[len(ALL_CONTEXTS) :])
    if not text.startswith(_PREFIX):
        return Subject(DEFAULT_CONTEXT, text)
    context, _, name = text[1:].partition(":")
    return Subject(context, name)


def qualified(text: str) -> str:
    """The stored form of a subject."""
    return parse_subject(text).qualified


def is_below(subject: str, prefix: str) -> bool:
    """Whether a qualified subject begins with a prefix; `:*:` stands for every context."""
    if prefix.startswith(ALL_CONTEXTS):
        return parse_subject(subject).name.startswith(prefix[len(ALL_CONTEXTS) :])
    return subject.startswith(prefix) and (prefix != "" or not subject.startswith(_PREFIX))


def beside(parent: str, text: str) -> str:
    """A subject named by a schema of `parent`: without a context, it is in the parent's context."""
    subject = parse_subject(text)
    if subject.context == DEFAULT_CONTEXT and not text.startswith(_PREFIX):
        subject = Subject(parse_subject(parent).context, subject.name)
    return subject.qualified


def in_context(context: str, text: str) -> str:
    """The subject in a request below `/contexts/{context}`."""
    if text.startswith((_PREFIX, ALL_CONTEXTS)):
        return qualified(text)
    name = context.strip(":")
    return Subject(name if name.startswith(".") else f".{name}", text).qualified
