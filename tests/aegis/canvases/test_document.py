"""The sections of markdown files."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aegis.canvases.document import (
    EMPTY,
    MAX_FILE_BYTES,
    MAX_SECTIONS,
    NotCanvas,
    appended,
    changed_lines,
    differences,
    parse,
    plain,
    written,
)
from aegis.errors import InvalidRequest

PLAN = "# Plan\n\nIntro.\n\n## Goals\n\n- ship\n\n## Log\n\nbegun\n"


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("", {"body": ""}),
        ("just text\n", {"body": "just text"}),
        (PLAN, {"_preamble": "# Plan\n\nIntro.", "Goals": "- ship", "Log": "begun"}),
        ("## A\n## B", {"A": "", "B": ""}),
        ("## A ##\n\nx", {"A": "x"}),
        ("##\tA\n", {"A": ""}),
        ("   ## A\nx", {"A": "x"}),
        ("    ## A\n", {"body": "    ## A"}),
        ("##A\n", {"body": "##A"}),
        ("### A\n", {"body": "### A"}),
        ("\\## A\n", {"body": "\\## A"}),
        ("## A\n```\n## B\n```\nx\n", {"A": "```\n## B\n```\nx"}),
        ("## A\n~~~sh\n## B\n", {"A": "~~~sh\n## B"}),
        ("<!--\n## A\n-->\n", {"body": "<!--\n## A\n-->"}),
        ("- ## A\n", {"body": "- ## A"}),
        ("> ## A\n", {"body": "> ## A"}),
        ("A\n---\nx\n", {"A": "x"}),
        ("A\nB\n-----\nx\n", {"A B": "x"}),
        ("A\n===\nx\n", {"body": "A\n===\nx"}),
        ("x\n\n---\n\ny\n", {"body": "x\n\n---\n\ny"}),
        ("---\ntitle: x\n---\nhead\n\n## A\n", {"_preamble": "---\ntitle: x\n---\nhead", "A": ""}),
        ("## A\r\n\r\nx\r\ny\r\n## B\r\n", {"A": "x\ny", "B": ""}),
        ("## A\rx\r## B", {"A": "x", "B": ""}),
        ("\ufeff## A\nx", {"A": "x"}),
        ("## A\u2028## B\nx", {"A\u2028## B": "x"}),
        ("## A\x0b## B\nx", {"A\x0b## B": "x"}),
        ("## A\n\none\n\n## A\n\ntwo\n", {"A": "one\n\ntwo"}),
        ("## body\nx", {"body": "x"}),
    ],
)
def test_a_section_is_a_heading_of_the_second_level_and_what_is_under_it(
    text: str, texts: dict[str, str]
) -> None:
    document = parse(text.encode())
    assert document.data == text.encode(), "reading changes no byte"
    assert {name: document.texts[document.key(name)] for name in document.names} == texts


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"caf\xe9", "byte 3 is not valid UTF-8"),
        (b"\xff\xfe#\0", "not valid UTF-8"),
        (b"x" * (MAX_FILE_BYTES + 1), "at most 262144"),
        (b"## a\n" * (MAX_SECTIONS + 1), "at most 500"),
    ],
)
def test_what_is_no_canvas_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(NotCanvas, match=re.escape(why)):
        parse(data)


@pytest.mark.parametrize(
    ("before", "section", "content", "after"),
    [
        (PLAN, "Goals", "new", PLAN.replace("- ship", "new")),
        (PLAN, "Goals", "", PLAN.replace("- ship\n\n", "")),
        (PLAN, "Goals", "\n\nnew\n\n", PLAN.replace("- ship", "new")),
        (PLAN, "_preamble", "Intro", "Intro\n\n## Goals\n\n- ship\n\n## Log\n\nbegun\n"),
        (PLAN, "New", "x", PLAN + "\n## New\n\nx\n"),
        (PLAN, "Log", "### Sub\n\n# One", PLAN.replace("begun", "### Sub\n\n# One")),
        (PLAN, "Log", "```\n## code\n```", PLAN.replace("begun", "```\n## code\n```")),
        ("", "body", "x", "x\n"),
        ("", "A", "x", "## A\n\nx\n"),
        ("text", "A", "x", "text\n\n## A\n\nx\n"),
        ("text\n", "body", "x", "x\n"),
        ("## A", "A", "x", "## A\n\nx\n"),
        ("## A\n## B\n", "A", "x", "## A\n\nx\n\n## B\n"),
        ("A\n---\nx", "A", "y", "A\n---\n\ny\n"),
        ("## A\r\n\r\nx\r\n", "A", "y\nz", "## A\r\n\r\ny\r\nz\r\n"),
        ("## A\r\n\r\nx\r\n", "B", "y", "## A\r\n\r\nx\r\n\r\n## B\r\n\r\ny\r\n"),
        ("\ufeff## A\n", "A", "x", "\ufeff## A\n\nx\n"),
    ],
)
def test_a_write_keeps_every_other_byte(
    before: str, section: str, content: str, after: str
) -> None:
    assert written(parse(before.encode()), section, content).data == after.encode()


@pytest.mark.parametrize(
    ("section", "content", "why"),
    [
        ("Goals", "## Own", "has a '##' heading of its own, 'Own'"),
        ("Goals", "Own\n---", "has a '##' heading of its own, 'Own'"),
        ("New", "x\n\n## New", "heading of its own"),
        ("Goals", "```\nopen", "close its code fence"),
        ("Goals", "<!-- open", "close its code fence"),
        ("Goals", "<script>\nopen", "close its code fence"),
        ("New #", "x", "cannot be the text of a heading"),
        ("a\nb", "x", "cannot be the text of a heading"),
        (" x", "x", "cannot be the text of a heading"),
        ("Twice", "x", "has 2 sections 'Twice'"),
        ("Goals", "x" * MAX_FILE_BYTES, "a canvas may have 262144"),
    ],
)
def test_a_write_that_would_change_other_sections_is_refused(
    section: str, content: str, why: str
) -> None:
    document = parse(f"{PLAN}\n## Twice\n\n## Twice\n\n## End\n".encode())
    with pytest.raises(InvalidRequest, match=re.escape(why)):
        written(document, section, content)


def test_an_open_fence_is_refused_at_the_end_too_once_it_would_matter() -> None:
    last = written(parse(PLAN.encode()), "Log", "```\nopen")
    with pytest.raises(InvalidRequest):
        written(last, "More", "x")


def test_the_number_of_sections_is_limited() -> None:
    document = parse(b"## a\n" * MAX_SECTIONS)
    with pytest.raises(InvalidRequest, match="500 sections"):
        written(document, "one more", "x")


def test_appended_lines_follow_the_text() -> None:
    document = appended(parse(PLAN.encode()), "Log", "- two\n- three\n")
    assert document.texts["Log"] == "begun\n- two\n- three"
    assert appended(document, "New", "first").texts["New"] == "first"
    assert appended(EMPTY, "body", "x").data == b"x\n"
    with pytest.raises(InvalidRequest, match="nothing to append"):
        appended(document, "Log", "\n \n")


LINES = st.sampled_from(
    [
        *("## A", "## B", "## C ##", "text", "- item", "  more", "> quote", "", "", "```", "~~~"),
        *("---", "===", "<!--", "-->", "<div>", "    code", "# one", "### three", "\ttab", "- ##"),
        *("[a]: /b", "1. x", "***", "a | b", "\\## no", "##", "## ", "--- ", "a\\"),
    ]
)
TEXTS = st.builds(
    lambda lines, end: end.join(lines),
    st.lists(LINES, max_size=14),
    st.sampled_from(["\n", "\r\n", "\r"]),
)


@settings(max_examples=200, deadline=None)
@given(TEXTS, st.sampled_from(["A", "B", "C", "D", "_preamble", "body"]), TEXTS)
def test_a_write_changes_exactly_its_section(text: str, section: str, content: str) -> None:
    before = parse(text.encode())
    assert before.data == text.encode()
    try:
        after = written(before, section, content)
    except InvalidRequest:
        return
    assert parse(after.data) == after, "what is composed is what a reader finds"
    key = before.key(section)
    assert after.texts.get(key, "") == plain(content)
    others = {name: each for name, each in before.texts.items() if name != key}
    left = {name: each for name, each in after.texts.items() if name != key}
    assert {name: each for name, each in others.items() if each or name != "_preamble"} == left


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=200), st.text(min_size=1, max_size=40), st.text(max_size=100))
def test_no_text_breaks_the_parser(text: str, section: str, content: str) -> None:
    try:
        before = parse(text.encode())
        after = written(before, section, content)
    except (InvalidRequest, NotCanvas, UnicodeEncodeError):
        return
    assert after.texts[before.key(section)] == plain(content) or not plain(content)


@pytest.mark.parametrize(
    ("before", "after", "counts"),
    [
        ("", "", (0, 0)),
        ("", "a\nb", (2, 0)),
        ("a\nb", "", (0, 2)),
        ("a\nb\nc", "a\nx\nc", (1, 1)),
        ("a\nb", "b\na", (1, 1)),
        ("\n".join(map(str, range(2_000))), "\n".join(map(str, range(1, 2_001))), (1, 1)),
    ],
)
def test_changed_lines_are_counted(before: str, after: str, counts: tuple[int, int]) -> None:
    assert changed_lines(before, after) == counts


def test_differences_name_new_changed_and_removed_sections() -> None:
    found = differences({"A": "1", "B": "2", "C": "3"}, {"A": "1", "B": "x", "D": "4"})
    assert [(each.section, each.text) for each in found] == [("B", "x"), ("D", "4"), ("C", None)]
