"""The console examples of docs/tables.md work as documented."""

import sys
from pathlib import Path

import pytest
from tests.cli.documented import examples, is_as_documented
from tests.cli.test_docs import run

import ottla

pytest.importorskip("pyiceberg")
DOCUMENT = Path(__file__).parents[2] / "docs" / "tables.md"


def test_the_examples_print_the_documented_output(tmp_path: Path) -> None:
    found = examples(DOCUMENT)
    assert len(found) >= 6
    with ottla.Broker() as broker:
        for example in found:
            output = run(example.command.replace("python ", f"{sys.executable} "), broker.bootstrap_servers, tmp_path)
            assert is_as_documented(output, example.output), f"$ {example.command}\n{output}"
