"""The Go client franz-go against a running Ottla."""

from pathlib import Path

from interop.ottla_server import OttlaServer
from interop.scenario import play


def test_franz_go_plays_the_scenario(ottla: OttlaServer, franz_go: Path) -> None:
    play(ottla, [str(franz_go)], "franz-go")
