"""The command that shows the size of the packages."""

from __future__ import annotations

from functools import cache
from itertools import chain

import pytest

from tests import house
from tests.journeys import JOURNEYS, trace_all

SOURCE = '''"""A module."""

import os  # an import is no code

class Fold:
    """A class."""

    field: int = 1
    """A field."""

    async def method(self) -> str:
        # A comment.
        return """text

        of three lines"""
'''


def test_each_file_has_one_subject() -> None:
    found = {file: house.subjects_of(file) for file in house.sources()}
    assert len(found) > 100
    assert {file: subjects for file, subjects in found.items() if len(subjects) != 1} == {}
    assert house.subjects_of("aegis/new.py") == house.subjects_of("aegis/new/__init__.py") == []


def test_each_path_of_a_subject_or_an_entity_is_in_the_packages() -> None:
    paths = [paths for _, paths in house.SUBJECTS.values()]
    named = chain.from_iterable(each.split() for each in (*paths, *house.ENTITIES.values()))
    files = house.sources()
    assert [path for path in named if not any(house.fit(file, path) for file in files)] == []


def test_imports_docstrings_and_comments_are_no_code() -> None:
    size = house.size_of(SOURCE)
    assert size == house.Size(files=1, lines=15, code=6, classes=1, functions=1, comments=2)


def test_the_report_adds_up_subjects_and_counts_the_modules_of_a_class_name() -> None:
    files = ("aegis/app.py", "aegis/queues/desk.py", "aegis/queues/tasks.py")
    report = house.report(dict.fromkeys(files, SOURCE))
    rows = {line[:20].split("  ")[0]: line.split()[-7:] for line in report.splitlines()}
    assert rows["queues"][-6:] == ["2", "30", "12", "2", "2", "3"]
    assert rows["inboxes … workspaces"] == ["2", "30", "12", "2", "2", "3", "10,500"]
    assert rows["all"] == ["3", "45", "18", "3", "3", "3", "88,000"]
    assert f"names that several classes have: 1\nFold: {' '.join(files)}\n" in report


@cache
def found() -> dict[str, list[str]]:
    """Return the files of the classes of both packages, by name."""
    return house.files_of_classes(house.sources())


def test_a_name_of_a_class_has_one_meaning_in_both_packages() -> None:
    assert house.repeated_names(found()) == {}


def test_each_shared_name_is_that_of_a_class_in_each_file() -> None:
    wrong = [
        (name, file)
        for name, files, _ in house.SHARED_NAMES
        for file in files.split()
        if file not in found().get(name, ())
    ]
    assert wrong == []


def test_a_third_class_may_not_take_a_shared_name() -> None:
    name, files, _ = house.SHARED_NAMES[0]
    texts = dict.fromkeys((*files.split(), "aegis/other.py"), f"class {name}: ...\n")
    assert house.repeated_names(house.files_of_classes(texts)) == {name: list(texts)}
    del texts["aegis/other.py"]
    assert house.repeated_names(house.files_of_classes(texts)) == {}


def test_a_class_in_a_class_or_a_blocking_twin_repeats_no_name() -> None:
    texts = {
        "aegis/tui/rail.py": "class Rail:\n    class Chosen: ...\n",
        "aegis/tui/tabs.py": "class Tabs:\n    class Chosen: ...\n",
        "aegis/client/nouns/queues.py": "class Queues: ...\n",
        "aegis/client/blocking/queues.py": "class Queues: ...\n",
    }
    assert house.repeated_names(house.files_of_classes(texts)) == {}
    texts["aegis/queues/desk.py"] = "def of():\n    class Queues: ...\n"
    assert house.repeated_names(house.files_of_classes(texts)) == {
        "Queues": ["aegis/client/nouns/queues.py", "aegis/queues/desk.py"]
    }


@pytest.mark.real
@pytest.mark.long
def test_each_journey_enters_functions_and_sends_messages() -> None:
    entered = trace_all(rounds=1)
    assert entered.keys() == JOURNEYS.keys()
    for each in entered.values():
        assert each.functions > each.files > 20
        assert each.functions > each.classes > 20
        assert each.messages >= 2
