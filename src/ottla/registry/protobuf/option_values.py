"""Values of options: constants, and messages in text format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.registry.protobuf.nodes import Entry, Listed, Literal, Text, Value, Word

if TYPE_CHECKING:
    from ottla.registry.protobuf.parsing import Tokens


def option_value(tokens: Tokens) -> Value:
    if tokens.next.kind == "text":
        return Text(tokens.text())
    if tokens.takes("{"):
        return _literal(tokens, "}")
    if tokens.takes("["):
        return _listed(tokens)
    sign = "-" if tokens.takes("-") else ""
    tokens.takes("+")
    if tokens.next.kind != "word":
        raise tokens.unexpected("a value")
    text = tokens.take().text
    while tokens.takes("."):
        text += "." + tokens.word()
    return Word(sign + text)


def _listed(tokens: Tokens) -> Listed:
    found: list[Value] = []
    while not tokens.takes("]"):
        found.append(_literal(tokens, ">") if tokens.takes("<") else option_value(tokens))
        tokens.takes(",")
    return Listed(tuple(found))


def _literal(tokens: Tokens, end: str) -> Literal:
    found: dict[str, list[Value]] = {}
    while not tokens.takes(end):
        name = _entry_name(tokens)
        has_colon = tokens.takes(":")
        if tokens.takes("<"):
            value: Value = _literal(tokens, ">")
        elif has_colon or tokens.next.text in ("{", "["):
            value = option_value(tokens)
        else:
            raise tokens.unexpected("':'")
        found.setdefault(name, []).append(value)
        if not tokens.takes(","):
            tokens.takes(";")
    # A repeated field is a list.
    single = (Entry(name, given[0] if len(given) == 1 else Listed(tuple(given))) for name, given in found.items())
    return Literal(tuple(single))


def _entry_name(tokens: Tokens) -> str:
    if not tokens.takes("["):
        return tokens.word()
    name = tokens.name()
    if tokens.takes("/"):
        name += "/" + tokens.name()
    tokens.expect("]")
    return f"[{name}]"
