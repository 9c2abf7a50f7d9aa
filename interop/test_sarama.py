"""The Go client Sarama against a running Ottla."""

from pathlib import Path

from interop.ottla_server import OttlaServer
from interop.scenario import play


def test_sarama_plays_the_scenario(ottla: OttlaServer, sarama: Path) -> None:
    play(ottla, [str(sarama)], "sarama")
