"""The pytest plugin: brokers as fixtures. Imports the broker only when a test uses it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ottla.broker.settings import Settings
    from ottla.testing import EphemeralBroker, EphemeralCluster, PipelineUnderTest


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Import the broker's modules without assertion rewriting.

    pytest rewrites the asserts in every module of a package with a plugin, which is useless here, makes the first
    import slow, and fails on Python 3.11 if two threads import at once ("AST constructor recursion depth mismatch").
    """
    hook = early_config.pluginmanager.rewrite_hook
    getattr(hook, "_must_rewrite", set()).difference_update(("ottla", "pyspark_ottla"))


@pytest.fixture(scope="session")
def ottla_settings() -> Settings | None:
    """The settings of all brokers. Override this fixture to change them."""
    return None


@pytest.fixture
def ottla(ottla_settings: Settings | None) -> Iterator[EphemeralBroker]:
    """A new broker per test: new port, new folder, no topics, no groups."""
    from ottla.testing import EphemeralBroker

    with EphemeralBroker(ottla_settings) as broker:
        yield broker


@pytest.fixture(scope="session")
def ottla_session(ottla_settings: Settings | None) -> Iterator[EphemeralBroker]:
    """One broker shared by all tests of the session."""
    from ottla.testing import EphemeralBroker

    with EphemeralBroker(ottla_settings) as broker:
        yield broker


@pytest.fixture
def ottla_cluster(ottla_settings: Settings | None) -> Iterator[EphemeralCluster]:
    """A new three-node cluster per test, in this process."""
    from ottla.testing import EphemeralCluster

    with EphemeralCluster(settings=ottla_settings) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def ottla_pipeline() -> Iterator[Callable[[str | Path], PipelineUnderTest]]:
    """Load a pipeline's file to run it on sample records, without a broker. All tests of the session share one Spark
    session.
    """
    from pyspark.sql import SparkSession

    from ottla.testing import PipelineUnderTest

    was_running = SparkSession.getActiveSession() is not None
    yield lambda file: PipelineUnderTest(Path(file))
    running = SparkSession.getActiveSession()
    if running is not None and not was_running:
        running.stop()
