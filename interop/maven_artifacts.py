"""Single artifacts of Maven Central, fetched once into `.interop/` of the checkout."""

import shutil
import subprocess
from functools import cache
from pathlib import Path

from interop.foreign_clients import only_one_process
from interop.kafka_artifacts import CACHE, FETCH_TIMEOUT_S, ToolMissingError


@cache
def maven_artifact(artifact: str) -> Path:
    """The folder with the jar of GROUP:NAME:VERSION or GROUP:NAME:VERSION:jar:CLASSIFIER."""
    _, name, version, *_ = artifact.split(":")
    folder = CACHE / f"maven-{name}-{version}"
    if not folder.is_dir():
        with only_one_process(f"maven-{name}"):
            if not folder.is_dir():
                _fetch(artifact, folder)
    return folder


def _fetch(artifact: str, folder: Path) -> None:
    mvn = shutil.which("mvn")
    if mvn is None:
        raise ToolMissingError(f"Maven (mvn) is not installed, so {artifact} cannot be fetched.")
    partial = folder.with_name(f"partial-{folder.name}")
    shutil.rmtree(partial, ignore_errors=True)
    command = [mvn, "-B", "-ntp", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={partial}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False)
    if done.returncode != 0:
        errors = [line for line in done.stdout.splitlines() if "ERROR" in line]
        raise RuntimeError(f"mvn could not fetch {artifact}: " + "\n".join(errors[:3] or [done.stderr]))
    # The folder appears under its final name only when it is whole.
    partial.rename(folder)
