"""The snippets of every library have the real address, and run where possible."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from pathlib import Path

    from interop.console.watched_page import WatchedPage
    from interop.ottla_server import OttlaServer

LIBRARIES = (
    *("confluent-kafka", "aiokafka", "kafka-python", "ottla.client"),
    *("Java", "kafkajs", "franz-go", "Sarama", "kcat", "curl"),
)
TIMEOUT_S = 60
EVERYWHERE = ".".join("0000")


def _snippets(console: WatchedPage, library: str, topic: str) -> list[str]:
    page = console.go("connect")
    page.get_by_label("Topic").fill(topic)
    page.get_by_role("button", name=library, exact=True).click()
    expect(page.locator(".snippet").first).to_contain_text(topic)
    return page.locator(".snippet code").all_text_contents()


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_snippet_holds_the_address_and_the_topic(console: WatchedPage, server: OttlaServer, library: str) -> None:
    address = server.http if library == "curl" else server.bootstrap
    for code in _snippets(console, library, "some-topic"):
        assert str(address) in code
        assert "some-topic" in code


def test_a_broker_that_listens_everywhere_is_named_as_this_page_is(console: WatchedPage) -> None:
    cluster = {"cluster_id": "x", "controller_id": 0, "brokers": [{"broker_id": 0, "host": EVERYWHERE, "port": 9092}]}
    console.page.route("**/v1/cluster", lambda route: route.fulfill(json=cluster))

    assert all("127.0.0.1:9092" in code for code in _snippets(console, "confluent-kafka", "some-topic"))


@pytest.mark.parametrize("library", ["confluent-kafka", "aiokafka", "kafka-python", "ottla.client"])
def test_a_snippet_for_python_writes_and_reads(console: WatchedPage, library: str, name: str) -> None:
    produce, consume = _snippets(console, library, name)
    # Each library in a separate group.
    consume = consume.replace("kitchen", name)
    subprocess.run([sys.executable, "-c", produce], timeout=TIMEOUT_S, check=True)
    read = subprocess.run(
        [sys.executable, "-c", consume], timeout=TIMEOUT_S, check=True, capture_output=True, text=True
    )

    assert read.stdout.split("\n")[0] == "0 b'customer-1' b'two coffees'"


@pytest.mark.parametrize("tool", ["curl", "kcat"])
def test_a_snippet_for_the_shell_writes_and_reads(console: WatchedPage, kcat: Path, tool: str, name: str) -> None:
    assert kcat.exists()
    produce, consume, *_ = _snippets(console, tool, name)
    subprocess.run(["sh", "-c", produce], timeout=TIMEOUT_S, check=True, capture_output=True)
    read = subprocess.run(["sh", "-c", consume], timeout=TIMEOUT_S, check=True, capture_output=True, text=True)

    assert "two coffees" in read.stdout
