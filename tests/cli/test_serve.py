"""`ottla serve` as a process: start-up, output, shutdown."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import stat
import time
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from msgspec.structs import replace
from tests.broker.making import batch, create_topic, fetch_request, produce, send_batch, values_in
from tests.broker.raw_client import HungUpError, RawClient

from ottla.cli.main import program
from ottla.core.errors import ErrorCode
from ottla.storage.folder.data_dir import CLEAN_SHUTDOWN
from ottla.wire.messages.api_versions import ApiVersionsRequest

from .serving import PATIENCE_S, Serve, run

if TYPE_CHECKING:
    from pathlib import Path

ANY_PORT = re.compile(r"127\.0\.0\.1:[1-9][0-9]+")


# Starting


def test_the_ready_file_of_an_earlier_run_is_removed_first(tmp_path: Path) -> None:
    ready_file = tmp_path / "ready.json"
    ready_file.write_text("{}")
    refused = CliRunner().invoke(program, ["serve", "--set", "net.prt=1", "--ready-file", str(ready_file)])
    assert refused.exit_code == 2
    assert not ready_file.exists()


def test_the_ready_file_does_not_follow_a_symlink(tmp_path: Path) -> None:
    from ottla.cli.server.ready import write_ready_file  # noqa: PLC0415

    victim = tmp_path / "victim"
    victim.write_text("untouched")
    ready_file = tmp_path / "ready.json"
    (tmp_path / "ready.json.tmp").symlink_to(victim)
    ready_file.symlink_to(victim)
    write_ready_file(ready_file, {"pid": 1})
    assert victim.read_text() == "untouched"
    assert not ready_file.is_symlink()
    assert json.loads(ready_file.read_text()) == {"pid": 1}


def test_it_prints_its_addresses_when_ready(tmp_path: Path) -> None:
    with Serve(tmp_path, "--http-port", "0") as serve:
        kafka, http_address = serve.ready["kafka"], serve.ready["http"]
        expected = f"ottla is ready: Kafka on {kafka}, HTTP on {http_address}, data in {serve.data_dir.resolve()}\n"
        assert serve.ready_line == expected
        assert serve.ready == {
            "kafka": kafka,
            "listeners": [f"PLAINTEXT://{kafka}"],
            "http": http_address,
            "schema_registry": f"http://{http_address}/schema-registry",
            "data_dir": str(serve.data_dir.resolve()),
            "pid": serve.process.pid,
        }
        assert ANY_PORT.fullmatch(kafka)
        assert ANY_PORT.fullmatch(http_address)
        assert kafka != http_address
        with RawClient(kafka) as client:
            assert client.ask(ApiVersionsRequest(), 0).api_keys
        assert serve.terminate() == 0
        assert serve.output() == ("", "")
    assert list(tmp_path.glob("ready.json*")) == [tmp_path / "ready.json"]


def test_without_http_it_does_not_mention_it(tmp_path: Path) -> None:
    with Serve(tmp_path) as serve:
        assert serve.ready["http"] is None
        assert "HTTP" not in serve.ready_line


def test_it_serves_health_over_http(tmp_path: Path) -> None:
    with Serve(tmp_path, "--http-port", "0", "--set", "broker.node_id=7") as serve:
        host, _, port = serve.ready["http"].rpartition(":")

        def ask(method: str, path: str) -> tuple[int, bytes]:
            connection = http.client.HTTPConnection(host, int(port), timeout=PATIENCE_S)
            connection.request(method, path)
            answer = connection.getresponse()
            body = answer.read()
            connection.close()
            return answer.status, body

        status, body = ask("GET", "/health")
        assert status == 200
        assert json.loads(body) == {
            "status": "ok",
            "node_id": 7,
            "kafka": serve.address,
            "partitions_without_leader": 0,
        }
        assert ask("GET", "/health?x=1")[0] == 200
        assert ask("HEAD", "/health") == (200, b"")
        assert ask("POST", "/health")[0] == 405
        assert ask("GET", "/%2e%2e%2fetc")[0] == 404
        for garbage in (b"\r\n\r\n", b"\xff" * 100 + b"\r\n\r\n", b"x" * 100_000):
            with socket.create_connection((host, int(port)), PATIENCE_S) as connection:
                connection.sendall(garbage)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(1000):
                    pass
        assert ask("GET", "/health")[0] == 200
        assert serve.terminate() == 0
        [complaint] = serve.output()[1].splitlines()
        assert "HTTP connection from 127.0.0.1 closed" in complaint


def test_a_busy_port_is_a_one_line_error_and_leaves_the_folder_clean(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, out, err = run(tmp_path, "--port", str(port))
    assert (code, out) == (1, "")
    assert err == f"ottla: cannot listen on 127.0.0.1:{port}: Address already in use\n"
    assert (tmp_path / "data" / CLEAN_SHUTDOWN).exists()


def test_a_foreign_or_unknown_host_is_a_one_line_error(tmp_path: Path) -> None:
    code, _, err = run(tmp_path, "--host", "192.0.2.1")
    assert (code, err) == (1, "ottla: cannot listen on 192.0.2.1:0: Cannot assign requested address\n")
    code, _, err = run(tmp_path, "--host", "no-such-host.invalid")
    assert code == 1
    assert err.startswith("ottla: cannot listen on no-such-host.invalid:0: ")
    assert err.count("\n") == 1


def test_a_busy_http_port_is_refused_as_a_busy_kafka_port_is(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, out, err = run(tmp_path, "--http-port", str(port))
    told = f"ottla: cannot listen on 127.0.0.1:{port} for HTTP: Address already in use; see --http-port\n"
    assert (code, out, err) == (1, "", told)
    assert (tmp_path / "data" / CLEAN_SHUTDOWN).exists()


def test_the_error_for_a_folder_in_use_names_the_process(tmp_path: Path) -> None:
    with Serve(tmp_path) as serve:
        code, out, err = run(tmp_path)
        assert (code, out) == (1, "")
        assert err.startswith(f"ottla: {serve.data_dir} is in use by process {serve.process.pid};")
        assert err.count("\n") == 1
        with RawClient(serve.address) as client:
            assert client.ask(ApiVersionsRequest(), 0).api_keys


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_a_one_line_error(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data").chmod(stat.S_IRUSR | stat.S_IXUSR)
    code, _, err = run(tmp_path)
    assert code == 1
    assert err.startswith("ottla: ")
    assert err.count("\n") == 1


def test_a_file_in_place_of_the_folder_is_a_one_line_error(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("x")
    code, _, err = run(tmp_path)
    assert (code, err) == (1, f"ottla: {tmp_path / 'data'} cannot be used: File exists\n")
    assert (tmp_path / "data").read_text() == "x"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--set", "net.max_idle_ms=many"), "net.max_idle_ms"),
        (("--set", "net.no_such_setting=1"), "no_such_setting"),
        (("--set", "log.segment_bytes=5"), "segment_bytes must be at least 1024"),
        (("--port", "70000"), "port must be between 0 and 65535"),
        (("--config", "missing.toml"), "missing.toml"),
        (("--set", "net.advertised=nowhere"), "advertised must be an address"),
    ],
)
def test_an_invalid_setting_is_a_one_line_error_and_touches_nothing(
    tmp_path: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    code, out, err = run(tmp_path, *arguments)
    assert (code, out) == (2, "")
    assert complaint in err
    assert err.startswith("ottla: ")
    assert not (tmp_path / "data").exists()


def test_flags_override_the_environment_which_overrides_the_file(tmp_path: Path) -> None:
    (tmp_path / "ottla.toml").write_text("[broker]\nnode_id = 5\ndefault_partitions = 5\n")
    with Serve(
        tmp_path, "--set", "broker.node_id=7", OTTLA_BROKER_NODE_ID="6", OTTLA_BROKER_DEFAULT_PARTITIONS="6"
    ) as serve:
        from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic  # noqa: PLC0415

        with RawClient(serve.address) as client:
            answer = client.ask(MetadataRequest(topics=(MetadataRequestTopic(name="t"),)))
        assert answer.brokers[0].node_id == 7
        assert len(answer.topics[0].partitions) == 6


def test_listening_on_all_interfaces_logs_a_warning(tmp_path: Path) -> None:
    with Serve(tmp_path, "--host", "0.0.0.0") as serve:  # noqa: S104
        port = serve.address.rpartition(":")[2]
        with RawClient(f"127.0.0.1:{port}") as client:
            assert client.ask(ApiVersionsRequest(), 0).api_keys
        serve.terminate()
        _, err = serve.output()
        assert err.startswith("ottla: listening on 0.0.0.0 without authentication: anyone who can reach it can")


def test_http_open_to_the_network_logs_a_warning(tmp_path: Path) -> None:
    with Serve(tmp_path, "--http-port", "0", "--set", "http.host=0.0.0.0") as serve:
        serve.terminate()
        assert "ottla: HTTP on 0.0.0.0:" in serve.output()[1]


def test_help_lists_every_option() -> None:
    shown = CliRunner().invoke(program, ["serve", "--help"], prog_name="ottla").output
    for option in ("config", "set", "data-dir", "host", "port", "http-port", "ready-file", "log-level", "log-format"):
        assert f"--{option} " in shown
    for default in ("127.0.0.1", "9092", "8080", "warning", "text"):
        assert default in shown


# Logging


def test_a_refusal_is_logged_once_with_the_peer_in_text_or_json(tmp_path: Path) -> None:
    for style in ("text", "json"):
        with Serve(tmp_path, "--log-format", style) as serve:
            for _ in range(3):
                with RawClient(serve.address) as client:
                    peer = "{}:{}".format(*client.socket.getsockname())
                    client.send_bytes(b"GET / HTTP/1.1\r\n\r\n")
                    with pytest.raises(HungUpError):
                        client.receive_frame()
            assert serve.terminate() == 0
            [line] = serve.output()[1].splitlines()
        said = "connection closed: this looks like HTTP on the Kafka port"
        assert said in line
        assert peer.partition(":")[0] in line
        if style == "json":
            entry = json.loads(line)
            assert (entry["level"], entry["logger"]) == ("warning", "ottla.net.listener")


def test_a_refused_produce_is_logged_at_debug_level_with_topic_partition_client_and_peer(tmp_path: Path) -> None:
    with Serve(tmp_path, "--log-level", "info") as serve:
        with RawClient(serve.address, client_id="me") as client:
            peer = "{}:{}".format(*client.socket.getsockname())
            assert send_batch(client, "nowhere", batch(b"x"), partition=3).error_code != ErrorCode.NONE
        assert serve.terminate() == 0
        err = serve.output()[1]
    assert f"nowhere-3: refused a produce request of client 'me' at {peer}: there is no partition nowhere-3" in err


# Shutdown


def test_sigterm_and_sigint_stop_it_cleanly_and_records_survive(tmp_path: Path) -> None:
    for number, how in enumerate((signal.SIGTERM, signal.SIGINT)):
        with Serve(tmp_path) as serve:
            assert not (serve.data_dir / CLEAN_SHUTDOWN).exists()
            with RawClient(serve.address) as client:
                if number == 0:
                    create_topic(client, "t")
                assert produce(client, "t", b"%d" % number) == number
                serve.process.send_signal(how)
                assert serve.process.wait(PATIENCE_S) == 0
                with pytest.raises(HungUpError):
                    client.receive_frame()
            assert (serve.data_dir / CLEAN_SHUTDOWN).exists()
    with Serve(tmp_path) as serve, RawClient(serve.address) as client:
        assert values_in(client, "t") == [b"0", b"1"]


def test_sigterm_answers_requests_in_flight(tmp_path: Path) -> None:
    with Serve(tmp_path) as serve, RawClient(serve.address) as client, RawClient(serve.address) as other:
        create_topic(client, "t")
        client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        waiting = client.send(fetch_request("t", max_wait_ms=300_000), 12)
        # Pipelined behind the waiting fetch, and answered after it.
        behind = client.send(ApiVersionsRequest(), 0)
        other.ask(ApiVersionsRequest(), 0)
        begun = time.monotonic()
        assert serve.terminate() == 0
        assert time.monotonic() - begun < 4
        assert client.receive(waiting).responses[0].partitions[0].error_code == ErrorCode.NONE
        assert client.receive(behind).error_code == ErrorCode.NONE


def hold_up(client: RawClient) -> None:
    """Request more than fits into the socket buffers and do not read it: shutdown waits for the response to be sent."""
    create_topic(client, "large")
    for _ in range(20):
        produce(client, "large", bytes(1_000_000))
    request = fetch_request("large")
    [topic] = request.topics
    [wanted] = topic.partitions
    parts = (replace(wanted, partition_max_bytes=1 << 30),)
    client.send(replace(request, max_bytes=1 << 30, topics=(replace(topic, partitions=parts),)), 12)
    assert client.socket.recv(4)


def test_a_second_sigterm_stops_it_at_once(tmp_path: Path) -> None:
    with Serve(tmp_path, "--set", "broker.drain_timeout_ms=60000") as serve, RawClient(serve.address) as client:
        hold_up(client)
        serve.process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + PATIENCE_S
        # It accepts no more connections: it is draining.
        while is_listening(serve.address):
            assert time.monotonic() < deadline
        assert serve.process.poll() is None
        assert serve.terminate() == 143
        assert not (serve.data_dir / CLEAN_SHUTDOWN).exists()
    with Serve(tmp_path) as serve, RawClient(serve.address) as client:
        assert len(values_in(client, "large", 19)) == 1


def is_listening(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), 1).close()
    except OSError:
        return False
    return True


def test_shutdown_waits_for_a_client_that_does_not_read_only_up_to_a_limit(tmp_path: Path) -> None:
    with Serve(tmp_path, "--set", "broker.drain_timeout_ms=100") as serve, RawClient(serve.address) as client:
        hold_up(client)
        assert serve.terminate() == 0
        assert (serve.data_dir / CLEAN_SHUTDOWN).exists()


@pytest.mark.parametrize("flush", ["os", "interval", "ack"])
def test_acknowledged_records_survive_sigkill(tmp_path: Path, flush: str) -> None:
    acknowledged = []
    for round_ in range(3):
        with Serve(tmp_path, "--set", f"log.flush={flush}") as serve, RawClient(serve.address) as client:
            if round_ == 0:
                create_topic(client, "t", partitions=2)
            for number in range(50):
                value = b"%d.%d" % (round_, number)
                assert produce(client, "t", value, partition=number % 2) >= 0
                acknowledged.append((number % 2, value))
            serve.process.kill()
            serve.process.wait()
    with Serve(tmp_path) as serve, RawClient(serve.address) as client:
        for partition in range(2):
            kept = [value for where, value in acknowledged if where == partition]
            assert values_in(client, "t", partition=partition) == kept


def test_a_failed_start_after_a_crash_does_not_mark_the_folder_as_clean(tmp_path: Path) -> None:
    with Serve(tmp_path) as serve, RawClient(serve.address) as client:
        create_topic(client, "t")
        produce(client, "t", b"kept")
        serve.process.kill()
        serve.process.wait()
    catalog = tmp_path / "data" / "catalog.sqlite"
    whole = catalog.read_bytes()
    catalog.write_bytes(b"garbage" * 1000)
    code, _, err = run(tmp_path)
    assert (code, err.count("\n")) == (1, 1)
    assert not (tmp_path / "data" / CLEAN_SHUTDOWN).exists()
    catalog.write_bytes(whole)
    with Serve(tmp_path) as serve, RawClient(serve.address) as client:
        assert values_in(client, "t") == [b"kept"]
