"""The commands of docs/rest.md work as documented."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import msgspec
import pytest

from ottla.http.app import ENDPOINTS
from ottla.http.config import HttpConfig
from ottla.http.monitoring import table_metrics
from ottla.http.records.rest_proxy import RestProxyError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .serving import HttpBroker

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "rest.md").read_text()
REST_PROXY = (DOCS / "rest-proxy.md").read_text()
MARK = "--- next ---"


def commands() -> Iterator[str]:
    """Each command of the page, with its continuation lines."""
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL):
        yield from re.findall(r"(?:curl|printf).*?(?=\ncurl|\nprintf|\Z)", block.strip(), re.DOTALL)


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_every_command_of_the_page_works_as_documented(served: HttpBroker, tmp_path: Path) -> None:
    for command in commands():
        script = f"set -o pipefail; O={served.url}\n{command.replace('curl -s', 'curl -sS')}"
        done = subprocess.run(
            ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False
        )
        assert done.returncode == 0, (command, done.stderr)
        if "offset=99" in command:
            shown = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
            assert msgspec.json.decode(done.stdout) == msgspec.json.decode(shown[0])
        else:
            assert '"status":4' not in done.stdout, (command, done.stdout)
            assert '"status":5' not in done.stdout, (command, done.stdout)


def test_every_setting_of_http_is_on_the_page() -> None:
    for field in HttpConfig.__struct_fields__:
        assert f"`http.{field}`" in PAGE


def test_every_path_is_on_the_page() -> None:
    for endpoint in ENDPOINTS:
        if endpoint.refusal is RestProxyError:
            assert endpoint.path.replace("{cluster_id}", "{id}").replace("{name}", "{topic}") in REST_PROXY
            continue
        pattern = re.sub(r"\\\{\w+\\\}", "[^/ ]+", re.escape(endpoint.path))
        assert re.search(pattern, PAGE), endpoint.path


def test_every_metric_is_documented_and_the_dashboard_uses_only_existing_ones(served: HttpBroker) -> None:
    assert served.broker.schemas.validation.refused == 0  # those of schemas are there from the first use on
    text = served.client.get("/metrics").text
    known = set(re.findall(r"# TYPE (\w+)", text))
    named = set(re.findall(r"`(ottla_\w+?)(?:_total)?`", PAGE))
    writer = SimpleNamespace(pid=None, restarts=0)
    tables = {family._name for family in table_metrics._families(writer, None, 0)}  # type: ignore[arg-type]
    assert named == (known | tables) - {"ottla_broker_info", "ottla_topics"}
    asked = set(re.findall(r"ottla_\w+", (DOCS / "grafana-dashboard.json").read_text()))
    bare = {re.sub(r"_(total|bucket|sum|count)$", "", name) for name in asked}
    assert bare <= known
