"""The public names of the library, loaded when they are first used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import actors

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", actors.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(actors, name) is not None


def test_the_type_checker_is_told_the_same_names() -> None:
    assert sorted(actors.__all__) == sorted(actors._MODULES)


def test_a_name_that_is_not_there_is_refused() -> None:
    with pytest.raises(AttributeError, match="module 'actors' has no attribute 'Actress'"):
        actors.Actress  # type: ignore[attr-defined]  # noqa: B018


def test_messages_and_codec_are_loaded_without_trio() -> None:
    code = "import sys, actors.codec, actors.messages; print('trio' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert done.stdout == "False\n"
