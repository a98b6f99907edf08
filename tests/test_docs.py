"""The documentation: its links lead somewhere, and what it names is there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

from aegis.cli.grammar.click_program import cli
from aegis.errors import AegisError

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]

FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
NAMED_PATH = re.compile(r"(?<![\w/.*-])(?:actors|aegis|tests|docs)/[\w./-]+\.(?:py|md|sh)\b")
PATH_OF_OURS = re.compile(r"(?<![\w/.*-])(?:actors|aegis|tests)/[\w./-]*")
BARE_FILE = re.compile(r"`(?:\.\./)?(\w+\.py)`")
NAMED_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
TEST = re.compile(r"^\s*(?:async )?def (test_\w+)", re.MULTILINE)
VERB = re.compile(r"^\| `([a-z ]+)` \|([^|]*)\|([^|]*)\|$", re.MULTILINE)
OPTIONS_OF_MOST = {"--root", "--as", "--json", "--help"}


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def headings(page: Path) -> set[str]:
    """The anchors of a page: lower case, blanks as hyphens, no punctuation."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    found = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in found}


def verbs(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[str, set[str]]]:
    """Every verb with the names of its options, those that most verbs have left out."""
    context = click.Context(command)
    if isinstance(command, click.Group):
        for word in command.list_commands(context):
            inner = command.get_command(context, word)
            assert inner is not None
            yield from verbs(inner, (*words, word))
    else:
        options = [each for each in command.params if isinstance(each, click.Option)]
        names = {max(option.opts, key=len) for option in options}
        yield " ".join(words), names - OPTIONS_OF_MOST


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_link_leads_somewhere(page: Path) -> None:
    broken = []
    for link in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        path, _, anchor = link.partition("#")
        if path.startswith("https:"):
            continue
        target = (page.parent / path).resolve() if path else page
        if not target.is_file() or (anchor and anchor not in headings(target)):
            broken.append(link)
    assert broken == []


def test_the_readme_is_short_and_has_a_picture_that_moves_and_two_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 700
    pictures = re.findall(r"!\[[^]]*\]\(([^)]+)\)", text)
    assert ["@keyframes" in (ROOT / path).read_text(encoding="utf-8") for path in pictures] == [
        True
    ]
    assert ".ci/uv run --no-dev aegis-actors up\n" in text
    assert ".ci/uv run just test\n" in text
    assert "pypi" not in text.lower()


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_code_fence_is_closed(page: Path) -> None:
    fences = re.findall(r"^\s*```", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(fences) % 2 == 0


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_file_that_is_named_exists(page: Path) -> None:
    paths = NAMED_PATH.findall(page.read_text(encoding="utf-8"))
    assert [path for path in paths if not (ROOT / path).is_file()] == []


def test_every_file_and_package_on_the_page_of_the_architecture_exists() -> None:
    paths = PATH_OF_OURS.findall((DOCS / "architecture.md").read_text(encoding="utf-8"))
    assert len(paths) > 50
    assert [path for path in paths if not (ROOT / path.rstrip(".")).exists()] == []


@pytest.mark.parametrize("page", sorted((DOCS / "explanation").glob("*.md")), ids=named)
def test_every_file_that_an_explanation_names_without_its_directory_exists(page: Path) -> None:
    known = {
        path.name for top in ("actors", "aegis", "tests") for path in (ROOT / top).rglob("*.py")
    }
    assert set(BARE_FILE.findall(page.read_text(encoding="utf-8"))) - known == set()


@cache
def reached_from_readme() -> set[Path]:
    reached: set[Path] = set()
    ahead = [ROOT / "README.md"]
    while ahead:
        here = ahead.pop()
        if here in reached or here.suffix != ".md":
            continue
        reached.add(here)
        for link in LINK.findall(FENCE.sub("", here.read_text(encoding="utf-8"))):
            path = link.partition("#")[0]
            if path and not path.startswith("https:"):
                ahead.append((here.parent / path).resolve())
    return reached


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_page_can_be_reached_from_the_readme(page: Path) -> None:
    assert page in reached_from_readme()


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_test_that_is_named_exists(page: Path) -> None:
    missing = [
        f"{path}::{test}"
        for path, test in NAMED_TEST.findall(page.read_text(encoding="utf-8"))
        if test not in TEST.findall((ROOT / path).read_text(encoding="utf-8"))
    ]
    assert missing == []


def test_every_promise_has_its_heading() -> None:
    text = (DOCS / "guarantees.md").read_text(encoding="utf-8")
    assert re.findall(r"^## G(\d+) ", text, re.MULTILINE) == [*map(str, range(1, 24))]


def test_every_rule_of_the_runtime_names_its_tests() -> None:
    page = DOCS / "explanation" / "rules-of-the-runtime.md"
    _, *rules = re.split(r"^## ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert [rule.partition(".")[0] for rule in rules] == [str(n) for n in range(1, 12)]
    assert [rule.splitlines()[0] for rule in rules if not NAMED_TEST.search(rule)] == []


TRAPS = [str(number) for number in range(1, 41)]


def traps() -> list[tuple[str, str]]:
    """Number and state today of each row of the table of traps."""
    page, _, _ = (DOCS / "traps.md").read_text("utf-8").partition("\n## ")
    return re.findall(r"^\| (\d+) \|.*\| ([^|]+) \|$", page, re.MULTILINE)


def test_every_trap_has_one_row_that_says_held_or_why_not() -> None:
    assert [number for number, _ in traps()] == TRAPS
    said = re.compile(r"held|(held|partly|planned)[:,.] ?\S.*")
    assert [number for number, today in traps() if not said.fullmatch(today)] == []


def test_every_trap_that_is_held_has_a_test_of_its_number() -> None:
    tests = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py"))
    held = [number for number, today in traps() if not today.startswith("planned")]
    assert held
    assert [n for n in held if not re.search(rf"def test_trap_0?{n}_", tests)] == []


def test_the_table_of_what_others_do_has_every_trap() -> None:
    _, _, others = (DOCS / "traps.md").read_text("utf-8").partition("\n## What others do")
    rows = re.findall(r"^\| ([\d, ]+) \|", others, re.MULTILINE)
    assert ", ".join(rows).split(", ") == TRAPS


def test_the_page_of_the_command_line_has_exactly_the_verbs_there_are() -> None:
    text = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")
    described = {
        verb: {option.strip(" `") for option in options.split(",")} - {""}
        for verb, _, options in VERB.findall(text)
    }
    assert described == dict(verbs(cli))


def test_the_page_of_errors_has_exactly_the_codes_there_are() -> None:
    text = (DOCS / "reference" / "errors.md").read_text(encoding="utf-8")
    described = set(re.findall(r"^\| `([a-z_]+)` \|", text, re.MULTILINE))
    refusals = {error.code for error in AegisError.__subclasses__()}
    assert described == refusals | {"cancelled", "internal"}
