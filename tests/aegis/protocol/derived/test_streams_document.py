from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from actors.codec import resolved_fields
from aegis.protocol.derived.streams_document import BEGIN, END, streams_part, with_streams
from aegis.protocol.stream_table import STREAMS, StreamEntry
from aegis.protocol.streams import (
    CLIENT_FRAMES,
    SERVER_FRAMES,
)

PAGE = Path(__file__).resolve().parents[4] / "docs" / "protocol.md"


def test_the_page_of_the_protocol_is_up_to_date() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_streams(page), (
        "run: python -m aegis.protocol.derived.streams_document < docs/protocol.md"
    )


def test_the_module_prints_the_page_anew() -> None:
    old = f"before\n{BEGIN}what was there{END}behind\n"
    printed = subprocess.run(
        [sys.executable, "-m", "aegis.protocol.derived.streams_document"],
        input=old.encode(),
        check=True,
        capture_output=True,
    )
    assert printed.stdout.decode() == f"before\n{BEGIN}\n{streams_part()}\n{END}behind\n"


@pytest.mark.parametrize("entry", STREAMS, ids=lambda entry: entry.name)
def test_every_argument_and_item_of_every_stream_is_on_the_page(entry: StreamEntry) -> None:
    section = streams_part().split(f"### {entry.name}\n")[1].split("\n### ")[0]
    form: type = entry.arguments
    for field in resolved_fields(form):
        assert f"| `{field.name}` |" in section
    for item in entry.items:
        assert f"[{item.__name__}](" in section


@pytest.mark.parametrize("form", [*CLIENT_FRAMES, *SERVER_FRAMES], ids=lambda form: form.__name__)
def test_every_field_of_every_frame_is_on_the_page(form: type) -> None:
    section = streams_part().split(f"**`{form.__name__.lower()}`**")[1].split("\n**`")[0]
    for field in resolved_fields(form):
        assert f"| `{field.name}` |" in section
