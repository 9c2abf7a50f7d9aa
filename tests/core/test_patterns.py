"""Topic name patterns: matches, unsupported syntax, and bounded time."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.core.patterns import InvalidPattern, Pattern, compiled

ATOMS = st.sampled_from(
    ["a", "b", "_", "-", r"\.", ".", "[ab]", "[^a]", "[a-b_]", r"\d", r"\w", r"\W", r"\b", "^", "$"]
)
PATTERNS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{0,}", "*?"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
    ),
    max_leaves=6,
)
NAMES = st.text("ab_-.1", max_size=6)


@given(PATTERNS, NAMES)
@settings(max_examples=400)
def test_patterns_match_what_python_would_match(pattern: str, name: str) -> None:
    assert Pattern(pattern).matches(name) is (re.fullmatch(pattern, name) is not None)


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("(?i)ORDERS", "orders"),
        ("(?i:O)rders", "orders"),
        ("(?P<kind>orders)-(?<number>[0-9]+)", "orders-17"),
        (r"\Qa.b\E+", "a.b"),
        (r"\Aorders\z", "orders"),
        ("[[:alpha:]]+[[:^alpha:]]", "orders1"),
        (r"[\d._-]+", "1._-"),
        (r"\x6frders", "orders"),
        (r"\x{6f}rders", "orders"),
        ("x{,2}|orders", "orders"),
        ("|orders", "orders"),
        ("[]o]rders", "orders"),
    ],
)
def test_the_syntax_of_re2_is_understood(pattern: str, name: str) -> None:
    assert compiled(pattern).matches(name)
    assert not compiled(pattern).matches("payments")


@pytest.mark.parametrize(
    "pattern",
    [
        *[
            "(",
            ")",
            "[a",
            "a**",
            "a++",
            "*",
            "(?=a)",
            "(?!a)",
            "(?<=a)",
            "(?>a)",
            r"(a)\1",
            r"\pL",
            "[b-a]",
            "\\",
            "(?P<1>a)",
        ],
        *["[[:letters:]]", "a{2,1}", "a{1001}", "(?:(?:a{100}){100}){100}", "(" * 200, r"\xzz", "(?i", "(?x)a"],
    ],
)
def test_syntax_unsupported_by_re2_and_huge_patterns_are_refused(pattern: str) -> None:
    with pytest.raises(InvalidPattern):
        compiled(pattern)


@pytest.mark.parametrize(
    "pattern", ["(a*)*b", "(a|aa)+b", "(a|a)*b", "a*a*a*a*a*a*a*b", "(a?){40}a{40}b", "(.*)(.*)(.*)(.*)1"]
)
def test_no_pattern_is_slow_on_a_long_name(pattern: str) -> None:
    # Python's `re` would never return for some of these.
    pattern_of_name = Pattern(pattern)
    assert not pattern_of_name.matches("a" * 249)
    assert len(pattern_of_name._steps) <= 249
