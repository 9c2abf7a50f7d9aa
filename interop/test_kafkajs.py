"""The JavaScript client kafkajs against a running Ottla."""

from interop.ottla_server import OttlaServer
from interop.scenario import play


def test_kafkajs_plays_the_scenario(ottla: OttlaServer, kafkajs: list[str]) -> None:
    play(ottla, kafkajs, "kafkajs")
