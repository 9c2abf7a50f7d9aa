"""docs/dmqp.md: its examples work and it is complete."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import ottla
from ottla import dmqp
from ottla.core.config_docs import field_docs
from ottla.dmqp.config import DmqpConfig
from ottla.dmqp.errors import DmqpError
from ottla.dmqp.frame import Method, Status
from ottla.http.resources.dmqp import ENDPOINTS

if TYPE_CHECKING:
    import pytest

    from .serving import DmqpBroker

PAGE = (Path(__file__).parents[2] / "docs" / "dmqp.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_every_command_runs_one_after_the_other(served: DmqpBroker) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OTTLA_")} | {
        "PYTHONPATH": str(Path(ottla.__file__).parents[1]),
        "OTTLA_BROKER": served.servers,
        "OTTLA_HTTP": served.bootstrap,
    }
    [commands] = blocks("sh")
    script = f'set -e\nottla() {{ "{sys.executable}" -m ottla "$@"; }}\n{commands}'
    done = subprocess.run(
        ["bash", "-c", script], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "first job\nsecond job\n" in done.stdout


def test_the_example_in_python_runs(served: DmqpBroker, capsys: pytest.CaptureFixture[str]) -> None:
    [example] = blocks("python")
    exec(compile(example.replace("127.0.0.1:8080", served.bootstrap), "docs/dmqp.md", "exec"), {})  # noqa: S102
    assert capsys.readouterr().out == "b'first' 0 0\n"


def test_every_setting_is_on_the_page_as_it_is_documented() -> None:
    docs = field_docs(DmqpConfig)
    for name in DmqpConfig.__struct_fields__:
        assert re.search(rf"\| `{name}` \| .* \| {re.escape(docs[name])} \|", PAGE), name


def test_every_error_status_method_and_path_is_on_the_page() -> None:
    for name in dmqp.__all__:
        kind = getattr(dmqp, name)
        if issubclass(kind, DmqpError) and kind.errno:
            assert f"| `{name}` | {int(kind.errno)} |" in PAGE
    assert [status for status in Status if f"| {int(status)} | {status.name if status else ''}" not in PAGE] == []
    assert [method for method in Method if f"{int(method)} {method.name}" not in PAGE] == []
    assert [endpoint.path for endpoint in ENDPOINTS if endpoint.path not in PAGE] == []
