"""The worst patterns of wording stay out of sources and pages; the list of exceptions shrinks.

``tests/language_exceptions.json`` has a number for each directory that still has some. A number
is never raised: reword instead, or lower it with ``python -m tests.language --shrink``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import language

pytestmark = pytest.mark.one_python


def words_in(text: str, name: str, tmp_path: Path) -> list[str]:
    path = tmp_path / name
    path.write_text(text)
    return [found.words for found in language.findings(path)]


@pytest.mark.long
def test_no_directory_has_more_findings_than_its_number() -> None:
    now, most = language.counted(), language.allowed()
    assert {name: count for name, count in now.items() if count > most.get(name, 0)} == {}


def test_the_numbers_are_lowered_when_a_text_is_reworded() -> None:
    now, most = language.counted(), language.allowed()
    assert {name: count for name, count in most.items() if count > now.get(name, 0)} == {}


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ('"""What a client may send."""', ["What"]),
        ('def f():\n    """Return the reply and tell the caller."""', ["tell"]),
        ('class A:\n    b: int = 1\n    """Whom it belongs to."""', ["Whom"]),
        ("x = 1  # whoever asks", ["whoever"]),
        ('raise ValueError("the daemon was told to stop")', ["told"]),
        ('raise ValueError(f"the shell {x} lies in {y} and goes on")', ["lies", "goes on"]),
        ('"""Return the value of ``tell``."""', []),
        ('"""The message that tells a peer the version."""', ["tells"]),
        ('tell = "told"', []),
        ('"""Send the event to each subscriber."""', []),
    ],
)
def test_the_search_reads_docstrings_comments_and_sentences(
    source: str, words: list[str], tmp_path: Path
) -> None:
    assert words_in(source, "module.py", tmp_path) == words


def test_the_search_leaves_out_code_on_a_page(tmp_path: Path) -> None:
    page = "You may `tell` an actor:\n\n```\nref.tell(1)  # told\n```\n\nIt is told.\n"
    assert words_in(page, "page.md", tmp_path) == ["told"]


def test_a_finding_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("One.\n\n```\ncode\n```\n\nThe peer comes back.\n")
    assert [found.line for found in language.findings(path)] == [7]
