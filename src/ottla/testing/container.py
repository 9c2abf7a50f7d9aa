"""A broker in a container; needs only the `docker` program.

The broker uses the same port inside and outside, and advertises `localhost` and that port, which is
correct for clients on this machine, without a proxy or a second start.
"""

from __future__ import annotations

import socket
import subprocess
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

_IMAGE: Final = "ottla"
_HOST: Final = "localhost"
_LOOK_EVERY_S: Final = 0.05
_ASK_TIMEOUT_S: Final = 2.0


class OttlaContainer:
    """`with OttlaContainer() as ottla:` starts a container of this image and removes it at the end."""

    def __init__(
        self,
        image: str = _IMAGE,
        *,
        settings: Mapping[str, str] | None = None,
        enable_faults: bool = False,
        docker: str = "docker",
    ) -> None:
        """Settings by name, such as `log.flush`."""
        self.image = image
        self._settings = dict(settings or {})
        self._enable_faults = enable_faults
        self._docker = docker
        self._id = ""
        self._kafka_port = self._http_port = 0

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, timeout_s: float = 30.0) -> Self:
        """Return once it is ready."""
        self._kafka_port, self._http_port = _free_ports()
        ports = [
            option for port in (self._kafka_port, self._http_port) for option in ("-p", f"127.0.0.1:{port}:{port}")
        ]
        self._id = self._run("run", "--detach", *ports, *self._variables(), self.image, *self._command())
        try:
            self._wait_until_healthy(timeout_s)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Remove it with all its data. Idempotent."""
        if self._id:
            container, self._id = self._id, ""
            self._run("rm", "--force", "--volumes", container)

    def get_bootstrap_server(self) -> str:
        """The bootstrap address."""
        return f"{_HOST}:{self._kafka_port}"

    def get_rest_url(self) -> str:
        """The REST URL, with `enable_faults` including `/v1/faults`."""
        return f"http://{_HOST}:{self._http_port}"

    def get_logs(self) -> str:
        return self._run("logs", self._id)

    def _variables(self) -> list[str]:
        named = {f"OTTLA_{name.replace('.', '_').upper()}": value for name, value in self._settings.items()}
        return [option for name, value in named.items() for option in ("--env", f"{name}={value}")]

    def _command(self) -> list[str]:
        ports = ["--port", str(self._kafka_port), "--http-port", str(self._http_port)]
        faults = ["--enable-faults"] if self._enable_faults else []
        return ["serve", "--ephemeral", *ports, "--advertised", self.get_bootstrap_server(), *faults]

    def _wait_until_healthy(self, timeout_s: float) -> None:
        give_up_at_s = time.monotonic() + timeout_s
        while not self._is_healthy():
            is_running = self._run("inspect", "--format", "{{.State.Running}}", self._id) == "true"
            if not is_running or time.monotonic() >= give_up_at_s:
                what = f"is not ready after {timeout_s:g} s" if is_running else "has ended"
                raise RuntimeError(f"the container of {self.image} {what}:\n{self.get_logs()}")
            time.sleep(_LOOK_EVERY_S)

    def _is_healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.get_rest_url()}/health", timeout=_ASK_TIMEOUT_S) as answer:  # noqa: S310
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False

    def _run(self, *arguments: str) -> str:
        try:
            done = subprocess.run([self._docker, *arguments], capture_output=True, text=True, check=False)
        except FileNotFoundError:
            raise RuntimeError(f"program {self._docker!r} not found; install Docker, or name another") from None
        if done.returncode:
            raise RuntimeError(f"{self._docker} {arguments[0]} failed: {done.stderr.strip()}")
        return (done.stdout + done.stderr if arguments[0] == "logs" else done.stdout).strip()


def _free_ports() -> tuple[int, int]:
    """Ports that are free now, and very likely still free when the container binds them."""
    with socket.socket() as first, socket.socket() as second:
        for one in (first, second):
            one.bind(("127.0.0.1", 0))
        return first.getsockname()[1], second.getsockname()[1]
