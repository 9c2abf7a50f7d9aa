from __future__ import annotations

import pytest

from ottla.cli.checks.findings import Judgement
from ottla.cli.checks.software import check_software, judge_codecs, judge_java, judge_python


@pytest.mark.parametrize(
    ("says", "judgement", "text"),
    [
        ('openjdk version "17.0.9" 2023-10-17', Judgement.OK, "version 17, for Spark"),
        ('openjdk version "21" 2023-09-19', Judgement.OK, "version 21, for Spark"),
        ('java version "1.8.0_392"', Judgement.NOTE, "version 8 is too old for Spark; nothing else needs it"),
        ("", Judgement.NOTE, "found, but its version is unknown"),
        (None, Judgement.NOTE, "not found; only Spark needs it"),
    ],
)
def test_java_is_checked_by_its_version_and_never_an_error(says: str | None, judgement: Judgement, text: str) -> None:
    finding = judge_java(says)
    assert (finding.judgement, finding.text) == (judgement, text)
    assert (finding.fix is None) == (judgement is Judgement.OK)


def test_broken_codecs_are_errors_and_slow_ones_notes() -> None:
    assert judge_codecs(is_compiled=True, broken=[]).judgement is Judgement.OK
    assert judge_codecs(is_compiled=False, broken=[]).judgement is Judgement.NOTE
    broken = judge_codecs(is_compiled=True, broken=["lz4", "zstd"])
    assert (broken.judgement, broken.text) == (Judgement.WRONG, "broken: lz4, zstd")


def test_python_without_uvloop_is_a_note() -> None:
    assert judge_python("3.11.7", has_uvloop=True).judgement is Judgement.OK
    assert judge_python("3.11.7", has_uvloop=False).fix == "pip install uvloop"


def test_a_java_that_does_not_start_is_still_found(tmp_path_factory: pytest.TempPathFactory) -> None:
    home = tmp_path_factory.mktemp("jdk")
    (home / "bin").mkdir()
    java = home / "bin" / "java"
    java.write_text("#!/no/such/interpreter\n")
    java.chmod(0o755)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("JAVA_HOME", str(home))
        [_, _, finding] = check_software()
    assert finding.text == "found, but its version is unknown"
