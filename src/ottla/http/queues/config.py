"""Settings of queues over HTTP: the keys of a v-queue-server.toml, and a few more."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_type_hints

from msgspec import Struct

from ottla.core.config_values import convert
from ottla.core.errors import ConfigError
from ottla.core.structs import repr_without

if TYPE_CHECKING:
    from collections.abc import Mapping

LogLevel = Literal["debug", "info", "warn", "warning", "error"]

DEFAULT_FILE: Final = Path("v-queue-server.toml")
_MAX_MESSAGE_BYTES: Final = 0x7FFF_FFFF
MAX_MESSAGES: Final = 10_000


class QueuesConfig(Struct, frozen=True, kw_only=True):
    data_directory: Path = Path("queues")
    """The folder of the queues served under /api/v1/queues."""
    max_message_size: int = 1024 * 1024
    """Maximum message size over HTTP, in bytes; a larger one is answered with 413."""
    default_batch_size: int = 1
    """The default of max_messages."""
    auth_enabled: bool | None = None
    """Whether queues require a user and password; by default, if there are users."""
    users: dict[str, str] = {}
    """Users and passwords of the queues."""
    fsync: Literal["push", "batch", "never"] = "push"
    """When messages are synced: before a push is answered, once per batch, or by the system."""
    part_bytes: int = 1 << 30
    """Roll to a new part before this one exceeds this size."""
    remove: Literal["never", "committed"] = "never"
    """Whether to remove parts that every consumer has committed past."""

    def __post_init__(self) -> None:
        if not 1 <= self.max_message_size <= _MAX_MESSAGE_BYTES:
            raise ValueError(f"max_message_size must be 1 to {_MAX_MESSAGE_BYTES}, got {self.max_message_size}")
        if not 1 <= self.default_batch_size <= MAX_MESSAGES:
            raise ValueError(f"default_batch_size must be 1 to {MAX_MESSAGES}, got {self.default_batch_size}")
        if self.part_bytes < 1:
            raise ValueError(f"part_bytes must be at least 1, got {self.part_bytes}")
        if self.auth_enabled and not self.users:
            raise ValueError("auth_enabled needs at least one user in [users]")

    def __repr__(self) -> str:
        return repr_without(self, "users")

    @property
    def needs_password(self) -> bool:
        return bool(self.users) if self.auth_enabled is None else self.auth_enabled


class QueueServerConfig(QueuesConfig, frozen=True, kw_only=True):
    bind_address: str = "127.0.0.1:9093"
    """The listen address; port 0 uses a free one."""
    log_level: LogLevel = "info"
    """The log level."""
    allowed_hosts: tuple[str, ...] = ()
    """Host names of this server, such as "queues.example", if no authentication is required. IP
    addresses, this machine's host name and names without a dot need not be listed; "*" allows all."""
    max_stalled_ms: int = 30_000
    """Disconnect a client that stalls while sending a request or reading a response for this long."""
    key_file: Path | None = None
    """The encryption keys of messages; none for no encryption."""

    def __post_init__(self) -> None:
        super().__post_init__()
        host, colon, port = self.bind_address.rpartition(":")
        if not colon or not host or not port.isdigit() or int(port) > 65535:
            raise ValueError(f"bind_address must be HOST:PORT, got {self.bind_address!r}")
        if self.max_stalled_ms < 1:
            raise ValueError(f"max_stalled_ms must be at least 1, got {self.max_stalled_ms}")

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.bind_address.rpartition(":")
        return host.removeprefix("[").removesuffix("]"), int(port)


def load_queue_server_config(file: Path | None, flags: Mapping[str, object]) -> QueueServerConfig:
    """From the command line, the file, or the defaults; ConfigError if invalid."""
    if file is None and DEFAULT_FILE.exists():
        file = DEFAULT_FILE
    values = {} if file is None else _values_in(file)
    try:
        return QueueServerConfig(**(values | dict(flags)))
    except ValueError as wrong:
        raise ConfigError(str(wrong) if file is None else f"{file}: {wrong}") from None


def _values_in(file: Path) -> dict[str, Any]:
    import tomllib

    try:
        table = tomllib.loads(file.read_text("utf-8"))
    except OSError as refused:
        raise ConfigError(f"{file}: cannot be read: {refused.strerror}") from None
    except ValueError as malformed:
        raise ConfigError(f"{file}: not valid TOML: {malformed}") from None
    types = get_type_hints(QueueServerConfig)
    names = QueueServerConfig.__struct_fields__
    values = {}
    for name, value in table.items():
        if name not in names:
            raise ConfigError(f"{file}: unknown setting {name}; valid are {', '.join(names)}")
        try:
            values[name] = convert(name, types[name], value, is_text=False)
        except ValueError as wrong:
            # Not the given value: it may be a password.
            said = str(wrong) if name != "users" else "expected a table of names and passwords"
            raise ConfigError(f"{file}: {name}: {said}") from None
    return values
