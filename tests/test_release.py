"""Files for releases and deployments: one version, reproducible archives, settings that exist."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest
import yaml

import ottla
from ottla.cli.main import program

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_version_is_in_one_place() -> None:
    assert "version" not in PROJECT["project"]
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "ottla.__version__"}
    assert re.fullmatch(r"\d+\.\d+\.\d+", ottla.__version__)


def archive(path: Path, names: list[str], at_s: int, user: str) -> Path:
    with tarfile.open(path, "w:gz") as made:
        for name in names:
            member = tarfile.TarInfo(f"ottla-1/{name}")
            member.size, member.mtime, member.uname, member.mode = len(name), at_s, user, 0o600
            made.addfile(member, io.BytesIO(name.encode()))
    return path


def test_a_source_distribution_does_not_depend_on_user_time_and_order(tmp_path: Path) -> None:
    made = []
    for number, (names, user) in enumerate(((["b.py", "a.py"], "ann"), (["a.py", "b.py"], "bob"))):
        folder = tmp_path / str(number)
        folder.mkdir()
        source = archive(tmp_path / "ottla-1.tar.gz", names, 1000 + number, user)
        subprocess.run(
            [sys.executable, ROOT / "tools" / "normalize_sdist.py", source, folder],
            env={"SOURCE_DATE_EPOCH": "500"},
            check=True,
        )
        made.append((folder / source.name).read_bytes())
    assert made[0] == made[1]
    with tarfile.open(tmp_path / "0" / "ottla-1.tar.gz") as packed:
        assert [(one.name, one.mtime, one.mode) for one in packed] == [
            ("ottla-1/a.py", 500, 0o644),
            ("ottla-1/b.py", 500, 0o644),
        ]


def test_the_same_python_versions_are_declared_tested_and_built() -> None:
    named = (
        re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", text) for text in PROJECT["project"]["classifiers"]
    )
    versions = [found[1] for found in named if found]
    tested = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())["jobs"]["unit"]["strategy"]["matrix"]
    assert tested["python"] == versions
    built = PROJECT["tool"]["cibuildwheel"]["build"].split()
    assert built == [f"cp{version.replace('.', '')}-*" for version in versions]


def test_workflows_and_manifests_are_valid_yaml() -> None:
    files = [*(ROOT / ".github").rglob("*.yml"), *(ROOT / "deploy").glob("*.yaml"), ROOT / ".pre-commit-config.yaml"]
    assert len(files) >= 7
    for file in [*files, ROOT / "docs" / "prometheus-alerts.yml"]:
        assert all(yaml.safe_load_all(file.read_text())), file


def test_targets_and_options_in_deployment_files_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))
    workflows = "".join(file.read_text() for file in (ROOT / ".github" / "workflows").glob("*.yml"))
    used = {target for line in re.findall(r"run: make ([a-z -]+)", workflows) for target in line.split()}
    assert used
    assert used <= targets

    served = program.get_command(None, "serve")
    options = {text for option in served.params for text in option.opts}
    [command] = re.findall(r"ExecStart=\S+ serve (.*)", (ROOT / "deploy" / "ottla.service").read_text())
    [_, stateful_set] = yaml.safe_load_all((ROOT / "deploy" / "kubernetes.yaml").read_text())
    [container] = stateful_set["spec"]["template"]["spec"]["containers"]
    for word in [*command.split(), *container["args"]]:
        assert not word.startswith("-") or word in options, word


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    # The programs and the user of an installed broker are not here.
    unit = (ROOT / "deploy" / "ottla.service").read_text().replace("/opt/ottla/bin/ottla", sys.executable)
    (tmp_path / "ottla.service").write_text(unit)
    done = subprocess.run(
        ["systemd-analyze", "verify", str(tmp_path / "ottla.service")], capture_output=True, text=True, check=False
    )
    said = [line for line in done.stderr.splitlines() if "ottla.service" in line]
    assert said == []


def test_all_sources_of_compiled_modules_are_in_the_source_distribution() -> None:
    package = ROOT / "src" / "ottla"
    packed = {
        file for pattern in PROJECT["tool"]["setuptools"]["package-data"]["ottla"] for file in package.glob(pattern)
    }
    assert {*package.rglob("*.pyx"), *package.rglob("*.pxd")} <= packed
