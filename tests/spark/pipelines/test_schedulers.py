"""The recipes of docs/schedulers.md: with stand-ins for the schedulers; in `make pipeline-test` with the real ones."""

import os
import re
import subprocess
import sys
import types
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from ottla import Producer
from ottla.cli.pipelines.pipeline import pipeline as commands
from ottla.testing import EphemeralBroker

PAGE = Path(__file__).parents[3] / "docs" / "schedulers.md"
INSTALL_S = 900
REAL = pytest.mark.skipif("SCHEDULERS" not in os.environ, reason="long: installs the scheduler; see make pipeline-test")


def recipe(scheduler: str, pipeline: Path) -> str:
    section = PAGE.read_text("utf-8").partition(f"\n## {scheduler}\n")[2]
    [code] = re.findall(r"```python\n(.*?)```", section.partition("\n## ")[0], re.DOTALL)
    assert "/srv/pipelines/orders.toml" in code
    return str(code).replace("/srv/pipelines/orders.toml", str(pipeline))


class Refused(Exception):
    """An error that a scheduler does not retry."""


class Task:
    ran: list[Callable[[], None]]

    def __init__(self, function: Callable[[], None]) -> None:
        self._function = function

    def __call__(self) -> "Task":
        self.ran.append(self._function)
        return self

    def __rshift__(self, other: "Task") -> "Task":
        return other


def stand_in_for_airflow(ran: list[Callable[[], None]]) -> dict[str, types.ModuleType]:
    def task(function: Callable[[], None] | None = None, **_options: object) -> Any:
        made = type("T", (Task,), {"ran": ran})
        return made if function is None else made(function)

    sdk, exceptions = types.ModuleType("airflow.sdk"), types.ModuleType("airflow.exceptions")
    vars(sdk).update(dag=lambda **_options: lambda function: function, task=task)
    vars(exceptions).update(AirflowFailException=Refused)
    return {"airflow": types.ModuleType("airflow"), "airflow.sdk": sdk, "airflow.exceptions": exceptions}


def stand_in_for_dagster(ran: list[Callable[[], None]]) -> dict[str, types.ModuleType]:
    class Failure(Refused):
        def __init__(self, text: str, *, allow_retries: bool) -> None:
            assert not allow_retries
            super().__init__(text)

    def asset(**_options: object) -> Callable[[Callable[[], None]], Callable[[], None]]:
        return lambda function: ran.append(function) or function  # type: ignore[func-returns-value]

    def keep(**options: object) -> object:
        return options

    module = types.ModuleType("dagster")
    vars(module).update(asset=asset, Failure=Failure, RetryPolicy=keep, ScheduleDefinition=keep, Definitions=keep)
    return {"dagster": module}


STAND_INS = {"Airflow": stand_in_for_airflow, "Dagster": stand_in_for_dagster}


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Callable[[], list[list[str]]]]:
    """Put a fake `ottla` on the PATH that exits with a code and records its arguments."""

    def make(code: int) -> Callable[[], list[list[str]]]:
        calls = tmp_path / f"calls-{code}"
        folder = tmp_path / f"bin-{code}"
        folder.mkdir()
        script = folder / "ottla"
        script.write_text(f'#!/bin/sh\necho "$@" >> {calls}\nexit {code}\n')
        script.chmod(0o755)
        monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
        return lambda: [line.split() for line in calls.read_text().splitlines()]

    return make


@pytest.mark.parametrize("scheduler", STAND_INS)
def test_a_recipe_calls_existing_commands_and_retries_only_retriable_errors(
    scheduler: str,
    program: Callable[[int], Callable[[], list[list[str]]]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = tmp_path / "orders.toml"
    file.write_text("")
    ran: list[Callable[[], None]] = []
    for name, module in STAND_INS[scheduler](ran).items():
        monkeypatch.setitem(sys.modules, name, module)
    exec(compile(recipe(scheduler, file), str(PAGE), "exec"), {})  # noqa: S102 - it is ours

    calls = program(0)
    for task in ran:
        task()
    assert calls()[0] == ["pipeline", "run", str(file), "--available-now"]
    for _, verb, *arguments in calls():
        command = commands.get_command(click.Context(commands), verb)
        assert command is not None
        command.make_context(verb, arguments)
    program(1)
    with pytest.raises(subprocess.CalledProcessError):
        ran[0]()
    program(2)
    with pytest.raises(Refused, match="is refused"):
        ran[0]()


# With the real schedulers


def installed(package: str, folder: Path) -> Path:
    """The Python of an environment with this package; skips the test if it is not available."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    try:
        done = subprocess.run(
            [python, "-m", "pip", "install", "-q", package],
            capture_output=True,
            text=True,
            timeout=INSTALL_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"{package} was not installed within {INSTALL_S} s")
    if done.returncode:
        pytest.skip(f"{package} cannot be installed here: {done.stderr.strip().splitlines()[-1]}")
    return python


def count_after(command: list[str], folder: Path, environment: dict[str, str]) -> int:
    """The rows of the table after a scheduler has run, which finds our `ottla` on its PATH."""
    import pyarrow.parquet as pq

    given = {**os.environ, **environment, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    subprocess.run(command, cwd=folder, env=given, check=True, timeout=1200)
    return int(pq.read_table(folder / "orders").num_rows)


@pytest.fixture
def orders(tmp_path: Path) -> Any:
    """A topic with a hundred orders, and the pipeline that `init` writes for it."""
    with EphemeralBroker() as broker:
        broker.create_topic("orders")
        with Producer(broker.bootstrap_servers) as producer:
            for number in range(100):
                producer.send("orders", b'{"id": %d, "city": "Prag"}' % number)
        ottla = [sys.executable, "-m", "ottla", "pipeline", "init", "orders", "--broker", broker.bootstrap_servers]
        subprocess.run(ottla, cwd=tmp_path, check=True, timeout=120)
        yield tmp_path / "orders.toml"


@REAL
@pytest.mark.timeout(2400)
def test_dagster_runs_the_recipe(orders: Path, tmp_path: Path) -> None:
    python = installed("dagster", tmp_path / "venv")
    code = recipe("Dagster", orders) + "\nassert dg.materialize([orders]).success\n"
    (tmp_path / "dagster_orders.py").write_text(code, "utf-8")
    home = {"DAGSTER_HOME": str(tmp_path), "DAGSTER_DISABLE_TELEMETRY": "yes"}
    assert count_after([str(python), "dagster_orders.py"], tmp_path, home) == 100


@REAL
@pytest.mark.timeout(2400)
def test_airflow_runs_the_recipe(orders: Path, tmp_path: Path) -> None:
    python = installed("apache-airflow>=3", tmp_path / "venv")
    home = tmp_path / "airflow"
    (home / "dags").mkdir(parents=True)
    (home / "dags" / "orders.py").write_text(recipe("Airflow", orders), "utf-8")
    settings = {"AIRFLOW_HOME": str(home), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
    subprocess.run([python, "-m", "airflow", "db", "migrate"], env={**os.environ, **settings}, check=True, timeout=600)
    command = [str(python), "-m", "airflow", "dags", "test", "orders"]
    assert count_after(command, tmp_path, settings) == 100
