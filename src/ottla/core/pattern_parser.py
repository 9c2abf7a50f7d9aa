r"""Parser of regular expressions in RE2's syntax.

Unicode classes (\pL) and \C are not supported. Look-around, back-references and possessive repetition are not part
of RE2.
"""

from __future__ import annotations

import string
from enum import Enum
from typing import Final, NamedTuple, NoReturn, TypeAlias

LONGEST: Final = 8192
"""Maximum length of an expression."""
_LARGEST_COUNT: Final = 1000
_MOST_DIGITS: Final = 4
_DEEPEST: Final = 100

Ranges: TypeAlias = tuple[tuple[str, str], ...]
"""Ranges of code points, both ends included."""
_ANY: Final[Ranges] = (("\0", "\U0010ffff"),)
_DIGITS: Final[Ranges] = (("0", "9"),)
_UPPER: Final[Ranges] = (("A", "Z"),)
_LOWER: Final[Ranges] = (("a", "z"),)
_WORD: Final[Ranges] = (*_DIGITS, *_UPPER, ("_", "_"), *_LOWER)

_CLASSES: Final[dict[str, Ranges]] = {"d": _DIGITS, "w": _WORD, "s": (("\t", "\n"), ("\f", "\r"), (" ", " "))}
_EDGES: Final = {"b": "WORD", "B": "NO_WORD", "A": "START", "z": "END"}
_CONTROLS: Final = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_NAMED_CLASSES: Final[dict[str, Ranges]] = {
    "alnum": (*_DIGITS, *_UPPER, *_LOWER),
    "alpha": (*_UPPER, *_LOWER),
    "ascii": (("\0", "\x7f"),),
    "blank": (("\t", "\t"), (" ", " ")),
    "cntrl": (("\0", "\x1f"), ("\x7f", "\x7f")),
    "digit": _DIGITS,
    "graph": (("!", "~"),),
    "lower": _LOWER,
    "print": ((" ", "~"),),
    "punct": (("!", "/"), (":", "@"), ("[", "`"), ("{", "~")),
    "space": (("\t", "\r"), (" ", " ")),
    "upper": _UPPER,
    "word": _WORD,
    "xdigit": (*_DIGITS, ("A", "F"), ("a", "f")),
}


def is_word(letter: str) -> bool:
    """Whether this is one of RE2's word characters."""
    return letter.isascii() and (letter.isalnum() or letter == "_")


class InvalidPattern(ValueError):
    """An invalid pattern; the message is a description without a full stop."""


class Characters(NamedTuple):
    """One character in these ranges, or outside of them."""

    ranges: Ranges
    is_negated: bool = False
    ignores_case: bool = False

    def has(self, letter: str) -> bool:
        forms = (letter, letter.lower(), letter.upper()) if self.ignores_case else (letter,)
        return any(first <= form <= last for first, last in self.ranges for form in forms) is not self.is_negated


class Edge(Enum):
    """An assertion about a position."""

    START = "start"
    END = "end"
    WORD = "word"
    NO_WORD = "no word"


class Sequence(NamedTuple):
    nodes: tuple[Node, ...]


class Alternatives(NamedTuple):
    nodes: tuple[Node, ...]


class Repeated(NamedTuple):
    node: Node
    least: int
    most: int | None


Node: TypeAlias = Characters | Edge | Sequence | Alternatives | Repeated


def parse(text: str) -> Node:
    """Raises InvalidPattern."""
    if len(text) > LONGEST:
        raise InvalidPattern(f"the expression is longer than {LONGEST} characters")
    return _Parser(text).parse()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._ignores_case = False
        self._depth = 0

    def parse(self) -> Node:
        node = self._alternatives()
        if self._at < len(self._text):
            self._fail("unexpected )")
        return node

    # ── Structure ────────────────────────────────────────────────────────────────────────────────────────────

    def _alternatives(self) -> Node:
        nodes = [self._sequence()]
        while self._take("|"):
            nodes.append(self._sequence())
        return nodes[0] if len(nodes) == 1 else Alternatives(tuple(nodes))

    def _sequence(self) -> Node:
        nodes: list[Node] = []
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            if self._take(r"\Q"):
                nodes += self._quoted()
                continue
            nodes.append(self._repeated(self._atom()))
        return Sequence(tuple(nodes))

    def _quoted(self) -> list[Node]:
        end = self._text.find(r"\E", self._at)
        end = len(self._text) if end < 0 else end
        quoted = self._text[self._at : end]
        self._at = min(end + 2, len(self._text))
        nodes: list[Node] = [self._literal(letter) for letter in quoted]
        return [*nodes[:-1], self._repeated(nodes[-1])] if nodes else nodes

    def _repeated(self, node: Node) -> Node:
        counts = self._counts()
        if counts is None:
            return node
        self._take("?")  # lazy matching does not change whether the text matches
        if self._counts() is not None:
            self._fail("invalid nested repetition operator")
        return Repeated(node, *counts)

    def _counts(self) -> tuple[int, int | None] | None:
        for sign, counts in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(sign):
                return counts
        end = self._text.find("}", self._at)
        if not self._text.startswith("{", self._at) or end < 0:
            return None
        least, comma, most = self._text[self._at + 1 : end].partition(",")
        if not least.isdecimal() or (most and not most.isdecimal()):
            return None  # a literal brace
        self._at = end + 1
        if max(len(least), len(most)) > _MOST_DIGITS:
            self._fail("invalid repeat count")
        highest = int(most) if most else (None if comma else int(least))
        if int(least) > _LARGEST_COUNT or (highest is not None and not int(least) <= highest <= _LARGEST_COUNT):
            self._fail("invalid repeat count")
        return int(least), highest

    def _atom(self) -> Node:
        letter = self._next()
        match letter:
            case "(":
                return self._group()
            case "[":
                return self._class()
            case ".":
                return Characters(_ANY)
            case "^":
                return Edge.START
            case "$":
                return Edge.END
            case "\\":
                return self._escaped()
            case _ if letter in "*+?":
                return self._fail("missing argument to repetition operator")
            case _:
                return self._literal(letter)

    def _group(self) -> Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            self._fail("expression nests too deeply")
        ignored_case = self._ignores_case
        if self._take("?") and self._flags_alone():
            self._depth -= 1
            return Sequence(())
        node = self._alternatives()
        if not self._take(")"):
            self._fail("missing closing )")
        self._ignores_case = ignored_case
        self._depth -= 1
        return node

    def _flags_alone(self) -> bool:
        """After "(?": whether these are flags for the rest of the group, and not the start of a new group."""
        if self._take("P<") or self._take("<"):
            end = self._text.find(">", self._at)
            if end < 0 or not self._text[self._at : end].isidentifier():
                self._fail("invalid named capture")
            self._at = end + 1
            return False
        turns_on = True
        while (letter := self._next()) in "imsU-":
            if letter == "-":
                turns_on = False
            elif letter == "i":
                self._ignores_case = turns_on
        if letter not in ":)":
            self._fail("invalid or unsupported Perl syntax")
        return letter == ")"

    # ── Characters ───────────────────────────────────────────────────────────────────────────────────────────

    def _literal(self, letter: str) -> Characters:
        return Characters(((letter, letter),), ignores_case=self._ignores_case)

    def _escaped(self) -> Node:
        letter = self._next()
        if letter in _EDGES:
            return Edge[_EDGES[letter]]
        if (ranges := _shorthand(letter)) is not None:
            return Characters(ranges)
        return self._literal(self._escaped_letter(letter))

    def _escaped_letter(self, letter: str) -> str:
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if letter == "x":
            return self._hexadecimal()
        if letter == "0":
            return "\0"
        if letter.isalnum():
            self._fail("invalid escape sequence")
        return letter

    def _hexadecimal(self) -> str:
        if self._take("{"):
            end = self._text.find("}", self._at)
            digits, self._at = self._text[self._at : end], end + 1
        else:
            digits, self._at = self._text[self._at : self._at + 2], self._at + 2
        if not 0 < len(digits) <= 6 or not set(digits) <= set(string.hexdigits) or int(digits, 16) > 0x10FFFF:
            self._fail("invalid escape sequence")
        return chr(int(digits, 16))

    def _class(self) -> Node:
        is_negated = self._take("^")
        ranges: list[tuple[str, str]] = []
        is_first = True
        while is_first or not self._take("]"):
            is_first = False
            ranges += self._class_item()
        return Characters(_merged(ranges), is_negated, self._ignores_case)

    def _class_item(self) -> Ranges:
        if self._take("[:"):
            end = self._text.find(":]", self._at)
            name = self._text[self._at : end]
            is_negated = name.startswith("^")
            if end < 0 or name.lstrip("^") not in _NAMED_CLASSES:
                self._fail("invalid character class range")
            self._at = end + 2
            named = _NAMED_CLASSES[name.lstrip("^")]
            return _complement(named) if is_negated else named
        letter = self._next()
        if letter == "\\":
            letter = self._next()
            if (ranges := _shorthand(letter)) is not None:
                return ranges
            letter = self._escaped_letter(letter)
        is_range = self._text.startswith("-", self._at) and not self._text.startswith("-]", self._at)
        if not is_range:
            return ((letter, letter),)
        self._at += 1
        last = self._next()
        last = self._escaped_letter(self._next()) if last == "\\" else last
        if last < letter:
            self._fail("invalid character class range")
        return ((letter, last),)

    # ── Input ────────────────────────────────────────────────────────────────────────────────────────────────

    def _next(self) -> str:
        if self._at >= len(self._text):
            self._fail("unexpected end of the expression")
        self._at += 1
        return self._text[self._at - 1]

    def _take(self, text: str) -> bool:
        is_there = self._text.startswith(text, self._at)
        self._at += len(text) * is_there
        return is_there

    def _fail(self, problem: str) -> NoReturn:
        raise InvalidPattern(problem)


def _shorthand(letter: str) -> Ranges | None:
    """The ranges of a class such as d, or of its complement, D."""
    ranges = _CLASSES.get(letter.lower())
    return _complement(ranges) if ranges is not None and letter.isupper() else ranges


def _merged(ranges: list[tuple[str, str]]) -> Ranges:
    """The ranges, sorted and without overlaps."""
    merged: list[tuple[str, str]] = []
    for first, last in sorted(set(ranges)):
        if merged and first <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        else:
            merged.append((first, last))
    return tuple(merged)


def _complement(ranges: Ranges) -> Ranges:
    """The complement; the ranges are sorted and disjoint."""
    gaps = []
    following = 0
    for first, last in ranges:
        if ord(first) > following:
            gaps.append((chr(following), chr(ord(first) - 1)))
        following = ord(last) + 1
    if following <= ord(_ANY[0][1]):
        gaps.append((chr(following), _ANY[0][1]))
    return tuple(gaps)
