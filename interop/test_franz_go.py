"""The Go client franz-go against a running Ottla."""

import json
import subprocess
from pathlib import Path

import ottla.testing
from interop.ottla_server import OttlaServer
from interop.scenario import play


def test_franz_go_plays_the_scenario(ottla: OttlaServer, franz_go: Path) -> None:
    play(ottla, [str(franz_go)], "franz-go")


def test_the_registry_client_of_franz_go_gets_what_it_expects(franz_go: Path) -> None:
    with ottla.testing.broker() as broker:
        command = [str(franz_go), "registry", broker.schema_registry_url, "orders-value"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "same_id": True,
        "versions": [1, 2],
        "is_listed": True,
        "by_id": True,
        "found": 2,
        "is_compatible": False,
        "refused": 40901,
        "missing": 40402,
        "referenced": True,
        "types": ["AVRO", "PROTOBUF", "JSON"],
        "level": "FULL",
        "mode": "READONLY",
        "read": 7,
        "deleted": [1, 2],
    }
