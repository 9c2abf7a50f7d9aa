"""Broker configs: which broker this is, where it listens, where its data is. All fixed at the start."""

from typing import Final

from ottla.broker.configs.definition import ConfigType, Definition

IDENTITY: Final = (
    Definition(
        name="node.id",
        type=ConfigType.INT,
        default=0,
        is_read_only=True,
        documentation="This broker's number, different from that of every other node of the cluster.",
    ),
    Definition(
        name="broker.id",
        type=ConfigType.INT,
        default=0,
        is_read_only=True,
        documentation="The older name of node.id; always the same number.",
    ),
    Definition(
        name="broker.rack",
        type=ConfigType.STRING,
        default=None,
        is_read_only=True,
        documentation="Where this broker stands, as a name that consumers nearby can ask for.",
    ),
    Definition(
        name="broker.draining",
        type=ConfigType.BOOLEAN,
        default=False,
        is_hidden=True,
        documentation=(
            "Give this node of a cluster no new partitions, and have others lead what it leads. Ottla's own; set by "
            "`ottla cluster drain`."
        ),
    ),
    Definition(
        name="process.roles",
        type=ConfigType.LIST,
        default=("broker", "controller"),
        is_read_only=True,
        documentation="What this process does in the cluster: serve clients (broker), decide who leads (controller).",
    ),
    Definition(
        name="listeners",
        type=ConfigType.LIST,
        default=("PLAINTEXT://127.0.0.1:9092",),
        is_read_only=True,
        documentation="The addresses on which this broker accepts connections, as NAME://host:port.",
    ),
    Definition(
        name="advertised.listeners",
        type=ConfigType.LIST,
        default=None,
        is_read_only=True,
        documentation=(
            "The addresses that clients are told to use. Where none is given, a client is told the host name and port "
            "by which it reached the broker."
        ),
    ),
    Definition(
        name="listener.security.protocol.map",
        type=ConfigType.STRING,
        default="SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        is_read_only=True,
        documentation="Which security protocol each listener speaks, as NAME:PROTOCOL pairs.",
    ),
    Definition(
        name="inter.broker.listener.name",
        type=ConfigType.STRING,
        default=None,
        is_read_only=True,
        documentation="The listener over which brokers talk to each other.",
    ),
    Definition(
        name="security.inter.broker.protocol",
        type=ConfigType.STRING,
        default="PLAINTEXT",
        is_read_only=True,
        documentation="The security protocol between brokers, where inter.broker.listener.name names no listener.",
    ),
    Definition(
        name="log.dirs",
        type=ConfigType.LIST,
        default=("data",),
        is_read_only=True,
        documentation="The folder that holds this broker's data.",
    ),
)
