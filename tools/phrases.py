"""Find phrases that hide the technical term: in comments, docstrings, messages, Markdown, JavaScript and HTML.

Run by `make check`.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHECKED = (
    *("src", "docs", "bench", "examples", "tests", "interop", "fuzz", "conftest.py"),
    *("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "Makefile"),
)
TESTS = ("tests/", "interop/", "fuzz/")
"""Their string literals are data, and are not checked; names of tests are."""
SUFFIXES = (".py", ".pyx", ".pxd", ".md", ".js", ".html", "Makefile")

PHRASES = re.compile(
    r"(?<!there )\b(?:is|are|was|were|be) no(?! longer| need| (?:more|less|later|earlier) than| faster| slower)\b"
    r"|\b(?:nobody|whoever|whomever|somebody|anybody|anew|thereof|whereof)\b"
    r"|\bcannot be had\b|\b(?:is|are|was|were) to be had\b|\bwhat is to\b|\b(?:those|the ones?) who\b"
    r"|\band the like\b|\bof it all\b|\bso many\b|\bfor so long\b|\bof (?:its|their|one's|our|your) own\b"
    r"|(?<!there )\b(?:is|are) none\b(?! of)|\bby (?:itself|themselves)\b|\bpassed over\b|\bone of many\b"
    r"|\bwhat (?:was|is|were|has been) (?:written|asked|said|meant|told|noted|held|kept)\b"
    r"|\bcould not be noted\b|\bis not to be\b|\bwho (?:asks|comes|wants|waits|reads|writes)\b"
    r"|\bmade again\b|\b(?:is|are) told so\b|\bwhatever comes of\b|\bthat cannot be (?:is|are|has)\b"
    r"|\bharms? nobody\b|\b(?:goes|go|went) on where\b|\bis said to be\b|\bthe how-many-eth\b|\bcame of it\b"
    r"|\brules only\b|\bfor ever\b|\bframes? of Spark's\b",
    re.IGNORECASE,
)


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Lines of prose with their line numbers; of Python string literals, comments and names of tests."""
    source = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield from enumerate(source.splitlines(), 1)
        return
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not token.string.startswith("# noqa"):
            yield token.start[0], token.string
    is_test = path.relative_to(ROOT).as_posix().startswith(TESTS)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node.lineno, node.name.replace("_", " ")
        elif isinstance(node, ast.Expr if is_test else ast.Constant):
            constant = node.value if isinstance(node, ast.Expr) else node
            if isinstance(constant, ast.Constant) and isinstance(constant.value, str):
                yield from enumerate(constant.value.splitlines(), constant.lineno)


def files() -> Iterator[Path]:
    listed = subprocess.run(["git", "ls-files", "-z", *CHECKED], cwd=ROOT, check=True, capture_output=True, text=True)
    for name in listed.stdout.split("\0"):
        if name.endswith(SUFFIXES) and (ROOT / name).is_file():
            yield ROOT / name


def main() -> int:
    failed = 0
    for path in files():
        name = path.relative_to(ROOT).as_posix()
        for number, line in sorted(set(texts(path))):
            for found in PHRASES.finditer(line):
                if found.group().endswith("None"):
                    continue
                print(f"{name}:{number}: {found.group()!r} in: {line.strip()[:110]}")
                failed += 1
    if failed:
        print(f"{failed} phrases to rewrite in plain technical English (CONTRIBUTING.md)")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
