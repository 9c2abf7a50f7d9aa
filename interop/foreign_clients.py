"""Clients in other languages, fetched and built once into `.interop/` of the checkout."""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from interop.kafka_artifacts import CACHE, HERE, ToolMissingError

CLIENTS = HERE / "clients"
FETCH_TIMEOUT_S = 500


@cache
def debian_program(name: str) -> Path:
    """A program of the Debian package of that name; a root user's machine gets it installed."""
    found = shutil.which(name)
    if found is None and os.geteuid() == 0 and shutil.which("apt-get") is not None:
        with only_one_process("apt-get"):
            _install_package(name)
        found = shutil.which(name)
    if found is None:
        raise ToolMissingError(f"{name} is not installed, and only root on Debian may install it here.")
    return Path(found)


@cache
def go_program(name: str, package: str = ".") -> Path:
    """The program of `clients/NAME`, built with the modules that its go.mod names, or `package` of one of them."""
    go = _needed("go", f"Go is not installed, so clients/{name} cannot be built.")
    _refuse_old_go(go, name)

    def build(folder: Path) -> None:
        # Neither a workspace nor flags of the machine's own may change what go.mod and go.sum say.
        environment = {**os.environ, "GOWORK": "off", "GOFLAGS": "-mod=readonly -trimpath -buildvcs=false"}
        command = [go, "-C", str(CLIENTS / name), "build", "-o", str(folder / name), package]
        _run_once(command, f"go could not build clients/{name}", environment)

    return _made_once(name, build) / name


def _refuse_old_go(go: str, name: str) -> None:
    oldest = re.search(r"^go (\d+)\.(\d+)", (CLIENTS / name / "go.mod").read_text(), re.MULTILINE)
    told = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, timeout=60, check=False).stdout
    ours = re.match(r"go(\d+)\.(\d+)", told)
    assert oldest is not None, f"clients/{name}/go.mod names no release of Go"
    if ours is None or tuple(map(int, ours.groups())) < tuple(map(int, oldest.groups())):
        raise ToolMissingError(
            f"clients/{name} needs Go {'.'.join(oldest.groups())} or newer; {go} is {told.strip()!r}."
        )


@cache
def node_program(name: str) -> list[str]:
    """How to run `clients/NAME/main.js` with the packages that its package.json names."""
    node = _needed("node", f"Node.js is not installed, so clients/{name} cannot run.")
    npm = _needed("npm", f"npm is not installed, so the packages of clients/{name} cannot be fetched.")

    def install(folder: Path) -> None:
        for file in _sources(CLIENTS / name):
            shutil.copy(file, folder)
        flags = ["--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--loglevel=error"]
        _run_once([npm, "install", *flags, "--prefix", str(folder)], f"npm could not fetch clients/{name}")

    return [node, str(_made_once(name, install) / "main.js")]


@cache
def rust_program(name: str) -> Path:
    """The program of `clients/NAME`, built with the crates that its Cargo.lock names."""
    cargo = _needed("cargo", f"Rust's cargo is not installed, so clients/{name} cannot be built.")

    def build(folder: Path) -> None:
        manifest = str(CLIENTS / name / "Cargo.toml")
        command = [cargo, "build", "--release", "--locked", "--manifest-path", manifest, "--target-dir", str(folder)]
        _run_once(command, f"cargo could not build clients/{name}")

    return _made_once(name, build) / "release" / name


def _made_once(name: str, make: Callable[[Path], None]) -> Path:
    """A folder named after what it was made of; it has that name only when it is whole."""
    digest = hashlib.sha256()
    for file in _sources(CLIENTS / name):
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    folder = CACHE / f"{name}-{digest.hexdigest()[:16]}"
    if folder.is_dir():
        return folder
    with only_one_process(name):
        if not folder.is_dir():
            for stale in CACHE.glob(f"{name}-*"):
                shutil.rmtree(stale)
            partial = CACHE / f"partial-{name}"
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            make(partial)
            partial.rename(folder)
    return folder


def _sources(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.is_file())


@contextmanager
def only_one_process(what: str) -> Iterator[None]:
    CACHE.mkdir(exist_ok=True)
    with (CACHE / f"lock.{what}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _install_package(name: str) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", name]
    first = subprocess.run(install, env=environment, capture_output=True, timeout=FETCH_TIMEOUT_S, check=False)
    if first.returncode != 0:  # a new machine has no list of packages, an old one an outdated one
        _run_once(["apt-get", "update", "-q"], "apt-get could not update its lists", environment)
        _run_once(install, f"apt-get could not install {name}", environment)


def _needed(program: str, otherwise: str) -> str:
    found = shutil.which(program)
    if found is None:
        raise ToolMissingError(otherwise)
    return found


def _run_once(command: Sequence[str], failure: str, environment: Mapping[str, str] | None = None) -> None:
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"{failure}: {(done.stdout + done.stderr)[-2000:]}")
