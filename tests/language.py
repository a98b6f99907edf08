"""The patterns of wording that the project avoids, and a command that lists where they are.

    python -m tests.language [PATH...]     each finding in these files or directories, a line each
    python -m tests.language --shrink      lower the numbers in language_exceptions.json to today's

Read are docstrings, comments, and sentences in strings of Python files, and the text of Markdown
files outside code. ``docs/how-to/develop.md`` has the rules behind the patterns.
"""

from __future__ import annotations

import ast
import io
import json
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs

ROOT = Path(__file__).resolve().parents[1]
EXCEPTIONS = Path(__file__).with_name("language_exceptions.json")

HISTORY = ("docs/past-bugs.md", "docs/changelog.md", "docs/decisions")
"""Pages that record what was; they are not reworded afterwards."""

OPENINGS = re.compile(r"^(?:What|Who|Whom|Whose|Whoever|Whatever|That|Those|By what|So long)\b")
"""The first word of a docstring that has no noun to stand on: "What a client may send"."""

_WORDS = {
    "notify, send, report; not 'tell'": "tell|tells|told|telling",
    "name the person or thing": "whoever|whatever|whomever|somebody|those who|him who|one who",
    "continue, restart, be; not a verb of motion": (
        "goes? on|going on|went on|comes? back|coming back|came back|stands|lies|lay"
    ),
    "say what it refers to": "likewise|what is there|by then|all that is",
    "the field's term": "elsewhere|happenings|crowd|flights|standings",
}

PATTERNS: Mapping[str, re.Pattern[str]] = {
    reason: re.compile(rf"\b(?:{words})\b", re.IGNORECASE) for reason, words in _WORDS.items()
}

_SENTENCE = re.compile(r"[A-Za-z']+ [A-Za-z']+ [A-Za-z']+")
_FENCE = re.compile(r"^(`{3,}|~{3,}).*?^\1\s*$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"``.+?``|`[^`\n]+`|\"[^\"\n]{0,60}\"", re.DOTALL)


@attrs.frozen
class Finding:
    """One place where a pattern was found: ``words`` on ``line`` (from 1) of ``path``."""

    path: Path
    line: int
    words: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.words!r}: {self.reason}"


def findings(path: Path) -> list[Finding]:
    """Return the findings in a file, by line."""
    text = path.read_text(encoding="utf-8")
    pieces = python_prose(text) if path.suffix == ".py" else markdown_prose(text)
    return sorted(
        (Finding(path, line, words, reason) for line, words, reason in judged(pieces)),
        key=lambda found: found.line,
    )


def judged(pieces: Iterator[tuple[int, str, bool]]) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the words and the reason of each finding."""
    for line, text, is_docstring in pieces:
        opening = OPENINGS.match(text.lstrip())
        if is_docstring and opening is not None:
            yield line, opening[0], "begin with a noun or an imperative"
        for reason, pattern in PATTERNS.items():
            for found in pattern.finditer(_CODE.sub(_blank, text)):
                yield line + text.count("\n", 0, found.start()), found[0], reason


def python_prose(text: str) -> Iterator[tuple[int, str, bool]]:
    """Yield docstrings, comments and sentences of Python source: line, text, is it a docstring."""
    seen: set[int] = set()
    for node in ast.walk(ast.parse(text)):  # a parent comes before its parts
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            seen.add(id(node.value))
            if isinstance(node.value.value, str):
                yield node.lineno, node.value.value, True
        elif isinstance(node, ast.JoinedStr):
            parts = [part for part in node.values if isinstance(part, ast.Constant)]
            seen |= {id(part) for part in parts}
            yield node.lineno, " x ".join(str(part.value) for part in parts), False
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in seen
            and _SENTENCE.search(node.value)
        ):
            yield node.lineno, node.value, False
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string, False


def markdown_prose(text: str) -> Iterator[tuple[int, str, bool]]:
    """Yield the text of a page with its blocks of code blanked."""
    yield 1, _FENCE.sub(_blank, text), False


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])


def read_files() -> Iterator[Path]:
    """Yield the sources of both packages and of the fault harness, and the hand-written pages."""
    for package in ("actors", "aegis"):
        yield from sorted((ROOT / package).rglob("*.py"))
    for path in sorted((ROOT / "tests" / "chaos").rglob("*.py")):
        if not path.name.startswith("test_"):  # they quote the names of rules
            yield path
    yield ROOT / "README.md"
    for page in sorted((ROOT / "docs").rglob("*.md")):
        if not str(page.relative_to(ROOT)).startswith(HISTORY):
            yield page


def counted() -> dict[str, int]:
    """Return the number of findings by directory; only those with any."""
    counts = Counter(
        str(found.path.parent.relative_to(ROOT))
        for path in read_files()
        for found in findings(path)
    )
    return dict(sorted(counts.items()))


def allowed() -> dict[str, int]:
    """Return how many findings each directory may have today."""
    numbers: dict[str, int] = json.loads(EXCEPTIONS.read_text(encoding="utf-8"))
    return numbers


def shrink() -> None:
    """Lower each number to today's count; a count above its number stays an error."""
    now, before = counted(), allowed()
    kept = {name: min(most, now[name]) for name, most in before.items() if now.get(name)}
    EXCEPTIONS.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")


def main(words: list[str]) -> None:
    """Run the command line."""
    if words == ["--shrink"]:
        shrink()
        return
    for word in words or [str(ROOT)]:
        top = Path(word).resolve()
        paths = [top] if top.is_file() else sorted((*top.rglob("*.py"), *top.rglob("*.md")))
        for path in paths:
            if not any(part.startswith(".") for part in path.relative_to(ROOT).parts):
                print(*findings(path), sep="\n", end="\n" if findings(path) else "")


if __name__ == "__main__":
    main(sys.argv[1:])
