"""The files of the images in messages: kept once, confirmed, swept and limited."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from aegis.agents.drivers.image_files import read_sent
from aegis.agents.sessions import sent_images
from aegis.agents.sessions.sent_images import SentImages
from aegis.journal.disk import OsDisk


@pytest.fixture
def images(tmp_path: Path) -> SentImages:
    return SentImages(OsDisk(), tmp_path)


def names(tmp_path: Path) -> list[str]:
    return sorted(str(each.relative_to(tmp_path / "sent")) for each in tmp_path.rglob("*.png"))


def test_an_image_is_read_before_and_after_its_message_is_confirmed(
    images: SentImages, tmp_path: Path
) -> None:
    images.keep([("a.png", b"data")])
    assert names(tmp_path) == ["new/a.png"]
    [before] = read_sent(tmp_path, ["a.png"])
    assert images.has_unconfirmed()
    images.confirm({"a.png"})
    assert (names(tmp_path), images.has_unconfirmed()) == (["a.png"], False)
    assert read_sent(tmp_path, ["a.png"]) == [before]
    images.keep([("a.png", b"data")])
    assert names(tmp_path) == ["a.png"]


def test_an_image_is_read_also_when_it_is_confirmed_between_two_looks(
    images: SentImages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images.keep([("a.png", b"data")])
    read = Path.read_bytes

    def look(path: Path) -> bytes:
        try:
            return read(path)
        except FileNotFoundError:
            images.confirm({"a.png"})
            raise

    monkeypatch.setattr(Path, "read_bytes", look)
    [found] = read_sent(tmp_path, ["a.png"])
    assert found.media_type == "image/png"


def test_a_sweep_keeps_what_a_message_awaits(images: SentImages, tmp_path: Path) -> None:
    images.keep([("a.png", b"data"), ("b.png", b"data")])
    images.sweep({"b.png"})
    assert names(tmp_path) == ["b.png"]


def test_the_oldest_are_dropped_that_no_message_awaits(
    images: SentImages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sent_images, "MAX_SENT_BYTES", 8)
    for number, name in enumerate(["a.png", "b.png", "c.png"]):
        images.keep([(name, b"data")])
        images.confirm({name})
        os.utime(images.path(name), (number, number))
    assert images.is_full()
    images.drop_oldest({"a.png"})
    assert (names(tmp_path), images.is_full()) == (["a.png", "c.png"], False)
