"""The pytest plugin in user tests."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).parents[2]
TESTS = """
import pytest
from ottla.broker.settings import Settings
from ottla.broker.config import BrokerConfig

@pytest.fixture(scope="session")
def ottla_settings():
    return Settings(broker=BrokerConfig(default_partitions=3))

def test_settings_are_given(ottla):
    ottla.produce("t", "x")
    assert len(ottla.broker.topics.by_name["t"].partitions) == 3

@pytest.mark.parametrize("turn", range(20))
def test_it_is_clean(ottla, ottla_session, turn):
    assert ottla.topics() == []
    ottla.produce("t", "x")
    assert ottla_session.produce("shared", "x") == turn
"""


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=100, check=False)


def test_user_tests_get_brokers_from_the_plugin(tmp_path: Path) -> None:
    (tmp_path / "test_app.py").write_text(TESTS)
    # By name, unless the installed package registers it.
    ended = run("-m", "pytest", "-q", "-W", "error", "-p", "ottla.testing.plugin", "-p", "no:ottla", ".", cwd=tmp_path)
    assert "21 passed" in ended.stdout, ended.stdout + ended.stderr


def test_the_plugin_is_registered_with_pytest() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert import_module(project["entry-points"]["pytest11"]["ottla"]).__name__ == "ottla.testing.plugin"
    assert any(one.startswith("pytest") for one in project["optional-dependencies"]["testing"])


def test_a_run_without_brokers_does_not_load_one(tmp_path: Path) -> None:
    code = "import sys, ottla.testing.plugin; assert 'ottla.broker' not in sys.modules, 'loaded'"
    ended = run("-c", code, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr


def test_modules_of_the_broker_are_imported_as_they_are(request: pytest.FixtureRequest) -> None:
    import ottla.http.framework.loop_server as imported

    spec = imported.__spec__
    assert spec is not None
    assert not type(spec.loader).__module__.startswith("_pytest")
    assert type(request.module.__spec__.loader).__module__.startswith("_pytest"), "those of tests are not"
