"""Broker configs: identity, listeners and data folder. All are static."""

from typing import Final

from ottla.broker.configs.definition import ConfigType, Definition

IDENTITY: Final = (
    Definition(
        name="node.id",
        type=ConfigType.INT,
        default=0,
        is_read_only=True,
        documentation="The id of this broker, unique in the cluster.",
    ),
    Definition(
        name="broker.id",
        type=ConfigType.INT,
        default=0,
        is_read_only=True,
        documentation="The older name of node.id; always the same value.",
    ),
    Definition(
        name="broker.rack",
        type=ConfigType.STRING,
        default=None,
        is_read_only=True,
        documentation="The rack of this broker, for replica placement and fetching from the closest replica.",
    ),
    Definition(
        name="broker.draining",
        type=ConfigType.BOOLEAN,
        default=False,
        is_hidden=True,
        documentation=(
            "Assign no new partitions to this node, and move its leaderships to others. Specific to Ottla; set by "
            "`ottla cluster drain`."
        ),
    ),
    Definition(
        name="process.roles",
        type=ConfigType.LIST,
        default=("broker", "controller"),
        is_read_only=True,
        documentation="The roles of this process: broker (serves clients), controller (manages the cluster).",
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
            "The addresses that are advertised to clients. Without it, a client gets the host name and port "
            "through which it connected."
        ),
    ),
    Definition(
        name="listener.security.protocol.map",
        type=ConfigType.STRING,
        default="SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        is_read_only=True,
        documentation="The security protocol of each listener, as NAME:PROTOCOL pairs.",
    ),
    Definition(
        name="inter.broker.listener.name",
        type=ConfigType.STRING,
        default=None,
        is_read_only=True,
        documentation="The listener for traffic between brokers.",
    ),
    Definition(
        name="security.inter.broker.protocol",
        type=ConfigType.STRING,
        default="PLAINTEXT",
        is_read_only=True,
        documentation="The security protocol between brokers, if inter.broker.listener.name is not set.",
    ),
    Definition(
        name="log.dirs",
        type=ConfigType.LIST,
        default=("data",),
        is_read_only=True,
        documentation="The data folder of this broker.",
    ),
)
