"""Promises in the documentation are linked to tests: each of these exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ("docs/cluster.md", "docs/faults.md")
SECURITY = "docs/security.md"
LINK = re.compile(r"`(test_\w+|(?:tests|interop)/[\w/.]+(?:::\w+)?)`")
IN_A_FILE = re.compile(r"`((?:tests|interop)/[\w/.]+\.py)`((?:[:,] `[\w…]+`)*)")
PROMISE = re.compile(r"\| promise \| test \| limit \|\n\|[-|]+\|\n((?:\|.*\n)+)")
LINKED_PAGES = ("docs/pipelines.md", "docs/schedulers.md", "docs/spark.md")
"""Their links to tests are those of Markdown."""
MARKDOWN_LINK = re.compile(r"\]\(\.\./((?:tests|interop)/[\w/.]+)\)")


def links() -> list[tuple[str, str]]:
    named = {(page, link) for page in PAGES for link in LINK.findall((ROOT / page).read_text())}
    linked = {(page, link) for page in LINKED_PAGES for link in MARKDOWN_LINK.findall((ROOT / page).read_text())}
    return sorted(named | linked)


def promises() -> list[str]:
    """The rows of the tables of promises."""
    return [row for table in PROMISE.findall((ROOT / SECURITY).read_text()) for row in table.splitlines()]


@pytest.mark.parametrize("row", promises(), ids=lambda row: row[2:60])
def test_a_security_promise_names_tests_that_exist(row: str) -> None:
    """A file, and maybe tests in it; … stands for the rest of a name."""
    found = IN_A_FILE.findall(row)
    assert found, "no test is named"
    for name, tests in found:
        source = (ROOT / name).read_text()
        for test in re.findall(r"`([\w…]+)`", tests):
            pattern = r"\bdef " + re.escape(test).replace("…", r"\w*") + r"\w*\(" if "…" in test else rf"\bdef {test}\("
            if test.startswith("…"):
                pattern = rf"\bdef test_\w*{test.strip('…')}\w*\("
            assert re.search(pattern, source), f"{name} has no {test}"


def file_of(link: str) -> Path:
    """A bare name is of a file in tests/faults, as that page says; a folder stands for all that is in it."""
    path = ROOT / (link if "/" in link else f"tests/faults/{link}")
    return path if path.exists() else path.with_name(f"{path.name}.py")


def test_the_pages_of_pipelines_are_linked_to_their_tests() -> None:
    assert len([link for page, link in links() if page == "docs/pipelines.md"]) > 15


@pytest.mark.parametrize(("page", "link"), links(), ids=lambda each: each)
def test_a_test_that_is_named_in_the_documentation_exists(page: str, link: str) -> None:
    name, _, function = link.partition("::")
    file = file_of(name)
    assert file.exists(), f"{page} names {link}, and there is no {file.relative_to(ROOT)}"
    if function:
        functions = (ast.FunctionDef, ast.AsyncFunctionDef)
        defined = {each.name for each in ast.parse(file.read_text()).body if isinstance(each, functions)}
        assert function in defined, f"{page} names {link}, and {name} has no such test"
