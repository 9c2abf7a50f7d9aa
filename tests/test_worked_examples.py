"""The worked examples of CONTRIBUTING.md: each adds one file and one line to a copy of the tree, and works."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import httpx
import pytest
from tests.cli.serving import Serve

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
EXAMPLE = re.compile(
    r"^`(?P<file>src/ottla/[\w/]+\.py)` .*?```python\n(?P<code>.*?)```\n\n"
    r"The line is in `(?P<table>[\w/.]+)`:\n\n```\n(?P<line>.*?\n)```",
    re.DOTALL | re.MULTILINE,
)
LAST_LINES = {
    # Of each table: the new line is put after it.
    "src/ottla/wire/apis.py": "DELETE_SHARE_GROUP_OFFSETS: Final = ",
    "src/ottla/spark/pipelines/sinks/registry.py": '"console": ',
    "src/ottla/http/app.py": '"monitoring.health",',
}
PIPELINE = """
[source.orders]
schema = "id bigint"
[sink.out]
kind = "lines"
path = "rows"
suffix = "/x"
"""
ASK = """
import sys
from tests.broker.raw_client import RawClient
from ottla.broker.handlers.echo import EchoRequest
from ottla.wire.messages.api_versions import ApiVersionsRequest
with RawClient(sys.argv[1]) as client:
    answer = client.ask(EchoRequest(text="hi"))
    served = client.ask(ApiVersionsRequest(client_software_name="x", client_software_version="1"))
    print(answer.text, answer.node_id, [each.api_key for each in served.api_keys if each.api_key == 20000])
"""


class Example(NamedTuple):
    file: str
    code: str
    table: str
    line: str


def examples() -> dict[str, Example]:
    """By the name of the new file."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    found = [Example(**match.groupdict()) for match in EXAMPLE.finditer(text)]
    return {Path(each.file).stem: each for each in found}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree with all examples in it."""
    source = tmp_path_factory.mktemp("tree") / "src"
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "*.c"))
    for example in examples().values():
        (source.parent / example.file).write_text(example.code)
        table = source.parent / example.table
        lines = table.read_text().splitlines(keepends=True)
        [at] = [at for at, line in enumerate(lines) if line.lstrip().startswith(LAST_LINES[example.table])]
        lines.insert(at + 1, example.line)
        table.write_text("".join(lines))
    return source


@pytest.fixture(scope="module")
def served(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    with Serve(tmp_path_factory.mktemp("serve"), "--http-port", "0", PYTHONPATH=str(tree)) as serve:
        yield serve


def python(tree: Path, *arguments: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join((str(tree), str(ROOT)))
    command = [sys.executable, *arguments]
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


def test_there_are_three_examples_of_one_file_and_one_line_each() -> None:
    assert {name: each.line.count("\n") for name, each in examples().items()} == {"echo": 1, "lines": 1, "greetings": 1}


def test_the_new_api_is_served(tree: Path, served: Serve) -> None:
    told = python(tree, "-c", ASK, served.address)
    assert (told.stdout, told.stderr) == ("hi 0 [20000]\n", "")


def test_the_new_resource_is_served_and_described(served: Serve) -> None:
    address = served.ready["http"]
    with httpx.Client(base_url=address if "://" in address else f"http://{address}", timeout=60) as http:
        assert http.get("/v1/greetings/Ann?language=cs").json() == {"text": "Ahoj, Ann"}
        assert http.get("/v1/greetings/Ann?lang=cs").status_code == 400
        assert "/v1/greetings/{name}" in http.get("/v1/openapi.json").json()["paths"]


def test_the_keys_of_the_new_sink_are_checked(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "shop.toml").write_text(PIPELINE)
    check = ("-m", "ottla", "pipeline", "check", "shop.toml", "--no-spark")

    refused = python(tree, *check, folder=tmp_path)
    assert "shop.toml, line 7: [sink.out] suffix: '/x' must not contain a slash" in refused.stderr

    (tmp_path / "shop.toml").write_text(PIPELINE.replace("/x", ".json"))
    accepted = python(tree, *check, folder=tmp_path)
    assert f"sink out: rows of orders to lines {tmp_path}/rows, append" in accepted.stdout, accepted.stderr
