"""Regular expressions in the broker: none comes from clients, and none is slow."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from time import thread_time
from typing import Any

import ottla

ROOT = Path(ottla.__file__).parent
NOT_IN_A_BROKER = {"cli", "client", "spark", "testing"}
"""Packages that no client's bytes reach: they run where their user runs them."""
CALLS = {"compile", "match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"}
COMPUTED = {
    "net/certificate_names.py": "the operator's principal_rules",
    "storage/segment_files/scan.py": "bytes of a batch header, escaped",
    "queue/folder.py": "the name of a queue, escaped",
    "cluster/catalog_nodes.py": "two constants",
    "core/config.py": "the name of a setting",
}
"""Computed expressions and their sources. None comes from a client; those use ottla.core.patterns."""
LENGTH = 4000
MOST_S = 0.02
"""A quadratic expression takes several times as long with this many characters, a linear one a hundredth."""


def calls() -> list[tuple[str, ast.Call]]:
    """Every use of `re` in a broker: file and call, with constants of the module in place of their names."""
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        name = path.relative_to(ROOT)
        if name.parts[0] in NOT_IN_A_BROKER:
            continue
        tree = ast.parse(path.read_text())
        constants = _constants(tree)
        for node in ast.walk(tree):
            called = node.func if isinstance(node, ast.Call) else None
            if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "re":
                assert isinstance(node, ast.Call)
                if called.attr in CALLS:
                    first = node.args[0]
                    if isinstance(first, ast.Name) and first.id in constants:
                        node.args[0] = constants[first.id]
                    found.append((name.as_posix(), node))
    return found


def _constants(tree: ast.Module) -> dict[str, ast.expr]:
    """The values of `NAME: Final = ...` of a module."""
    return {
        each.target.id: each.value
        for each in tree.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and each.value is not None
        if isinstance(each.annotation, ast.Name) and each.annotation.id == "Final"
    }


def constant(node: ast.expr) -> str | bytes | None:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value if isinstance(value, str | bytes) else None


def flags_of(call: ast.Call) -> int:
    named = [node.attr for each in call.args[1:] for node in ast.walk(each) if isinstance(node, ast.Attribute)]
    return sum(getattr(re, name) for name in named if name.isupper())


def test_no_expression_comes_from_a_client() -> None:
    computed = {name for name, call in calls() if constant(call.args[0]) is None}
    assert computed == COMPUTED.keys()


def test_no_module_imports_another_engine_or_hides_this_one() -> None:
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                assert node.module not in ("re", "fnmatch", "regex"), path
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    assert alias.name not in ("fnmatch", "regex"), path
                    assert alias.name != "re" or alias.asname is None, path


def hostile_texts(pattern: str) -> list[str]:
    """Long texts that almost match the expression, with an end that does not."""
    letters = sorted({letter for letter in pattern if letter.isascii()} | set("a0A-_. ,=\"'`\n"))
    units = letters + [one + other for one in letters for other in letters if one != other]
    return [unit * (LENGTH // len(unit)) + end for unit in units for end in ("\0", "x!")]


def test_every_constant_expression_is_linear() -> None:
    slow = []
    for name, call in calls():
        pattern = constant(call.args[0])
        if pattern is None:
            continue
        expression: re.Pattern[Any] = re.compile(pattern, flags_of(call))
        is_text = isinstance(pattern, str)
        for text in hostile_texts(pattern if isinstance(pattern, str) else pattern.decode()):
            subject = text if is_text else text.encode()
            began_s = thread_time()
            expression.fullmatch(subject)
            if thread_time() - began_s > MOST_S:
                slow.append((name, pattern, text[:4]))
                break
    assert slow == []
