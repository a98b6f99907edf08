"""Files that the web page sends: from the operator's page only, bounded, and never outside."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from aegis.servers.gateway import uploads
from aegis.servers.gateway.uploads import make_room, stored_name
from tests.attacks.test_page_login import Login, logged_in, origin_of
from tests.e2e.harness import GUARD_S, DaemonProcess
from tests.resources.waiting import until

pytestmark = pytest.mark.real


def upload(
    daemon: DaemonProcess,
    content: bytes | Iterator[bytes],
    headers: Mapping[str, str | None],
    *,
    name: str = "",
    method: str = "POST",
) -> tuple[int, Any]:
    """Return the status, and the answer or the sentence; a header of None is left out."""
    address = urlsplit(origin_of(daemon))
    assert address.hostname is not None
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=GUARD_S)
    given = {key: value for key, value in headers.items() if value is not None}
    # A refused body is read for a second, and a busy machine may not have sent all of it by then.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        connection.request(method, f"/upload?name={quote(name)}", content, given)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, json.loads(text) if answer.status == 200 else text


def of_page(daemon: DaemonProcess, login: Login) -> dict[str, str | None]:
    return {"origin": origin_of(daemon), "cookie": login.cookie, "x-aegis-page": login.key}


def stored(daemon: DaemonProcess) -> list[Path]:
    directory = daemon.root / ".aegis" / "state" / uploads.DIRECTORY
    return sorted(directory.iterdir()) if directory.exists() else []


def test_a_page_sends_files_that_only_this_user_reads(daemon: DaemonProcess) -> None:
    keys = of_page(daemon, logged_in(daemon))
    status, answer = upload(daemon, b"\0pixels", keys, name="../../a picture's.png")
    assert status == 200, answer
    path = Path(answer["path"])
    assert path in stored(daemon)
    assert path.name.endswith("-a-picture-s.png")
    assert (path.read_bytes(), answer["bytes"]) == (b"\0pixels", 7)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    in_chunks = iter([b"x" * 70_000, b"y" * 70_000])
    status, answer = upload(daemon, in_chunks, keys, name="log.txt")
    assert (status, answer["bytes"]) == (200, 140_000)
    bearer = {"authorization": f"Bearer {daemon.endpoint.token}"}
    assert upload(daemon, b"x", bearer)[0] == 200


def test_nobody_else_sends_files(daemon: DaemonProcess) -> None:
    before = stored(daemon)
    keys = of_page(daemon, logged_in(daemon))
    keyless: list[dict[str, str | None]] = [
        {"cookie": None},
        {"x-aegis-page": None},
        {"x-aegis-page": "0" * 43},
        {"origin": None},
        {"origin": "http://evil.example"},
        {"authorization": "Bearer wrong"},
    ]
    for wrong in keyless:
        status, sentence = upload(daemon, b"x", {**keys, **wrong})
        assert (status, bool(sentence)) == (403, True), wrong
    link = daemon.call("page_link", view="agent:anybody", label="reader", for_s=600)
    viewer = logged_in(daemon, link=link["url"].partition("#v=")[2])
    assert upload(daemon, b"x", of_page(daemon, viewer))[0] == 403
    url = daemon.call("session_new", handle="uploader")["url"]
    bearer = {"authorization": f"Bearer {url.rpartition('/')[2]}"}
    assert upload(daemon, b"x", bearer)[0] == 403
    assert upload(daemon, b"", keys, method="GET")[0] == 405
    assert stored(daemon) == before


def test_a_file_that_is_empty_too_large_or_cut_off_is_not_kept(daemon: DaemonProcess) -> None:
    before = stored(daemon)
    keys = of_page(daemon, logged_in(daemon))
    assert upload(daemon, b"", keys)[0] == 400
    large = uploads.MAX_UPLOAD_BYTES + 1
    assert upload(daemon, b"x" * large, keys)[0] == 413
    assert upload(daemon, (b"x" * 2**20 for _ in range(17)), keys)[0] == 413
    address = urlsplit(origin_of(daemon))
    sent = "".join(f"{key}: {value}\r\n" for key, value in keys.items())
    head = f"POST /upload HTTP/1.1\r\nhost: {address.netloc}\r\n{sent}content-length: 9\r\n\r\n"
    with socket.create_connection((address.hostname, address.port), timeout=GUARD_S) as client:
        client.sendall(f"{head}half".encode())
        until(lambda: len(stored(daemon)) > len(before), "the file is begun")
        status, sentence = upload(daemon, b"other", keys)
        assert (status, "one file at a time" in sentence) == (429, True)
    until(lambda: stored(daemon) == before, "half a file is deleted")
    assert upload(daemon, b"whole", keys)[0] == 200


def test_a_link_in_place_of_the_directory_is_not_followed(
    own_daemon: DaemonProcess, tmp_path: Path
) -> None:
    own_daemon.start()
    target = tmp_path / "elsewhere"
    target.mkdir()
    keys = of_page(own_daemon, logged_in(own_daemon))
    (own_daemon.root / ".aegis" / "state" / uploads.DIRECTORY).symlink_to(target)
    assert upload(own_daemon, b"x", keys)[0] == 507
    assert [*target.iterdir()] == []


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("", "file"),
        ("name=", "file"),
        ("name=..%2F..%2Fetc%2Fpasswd", "passwd"),
        ("name=.bashrc", "bashrc"),
        ("name=%E2%80%AEgnp.exe", "gnp.exe"),
        ("name=%0A%00-rf", "rf"),
        (f"name={quote('ä' * 99 + '.md')}", "ä" * 57 + ".md"),
        ("name=%FF%FE", "file"),
        ("name=a&name=b", "a"),
    ],
)
def test_a_name_is_a_plain_one(query: str, name: str) -> None:
    found = stored_name(query.encode())
    assert found == name
    assert len(found.encode()) < 240


def test_old_files_are_deleted_and_of_too_many_the_oldest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / uploads.DIRECTORY
    make_room(directory, 0)
    assert not directory.exists()
    monkeypatch.setattr(uploads, "MAX_FILES", 4)
    monkeypatch.setattr(uploads, "MAX_TOGETHER_BYTES", 100)
    make_room(directory, 10)
    now = time.time()
    for number, age in enumerate((uploads.KEPT_S + 60, 50, 40, 30)):
        path = directory / f"{number}"
        path.write_bytes(b"x" * 10)
        os.utime(path, (now - age, now - age))
    make_room(directory, 10)
    assert {each.name for each in directory.iterdir()} == {"1", "2", "3"}
    make_room(directory, 75)
    assert {each.name for each in directory.iterdir()} == {"2", "3"}


def image(
    daemon: DaemonProcess, path: object, headers: Mapping[str, str | None]
) -> tuple[int, bytes]:
    """Return the status and the body of a request for an image."""
    address = urlsplit(origin_of(daemon))
    assert address.hostname is not None
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=GUARD_S)
    given = {key: value for key, value in headers.items() if value is not None}
    connection.request("POST", f"/image?path={quote(str(path))}", headers=given)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body


def test_a_page_reads_the_images_of_transcripts_and_no_other_file(daemon: DaemonProcess) -> None:
    keys = of_page(daemon, logged_in(daemon))
    state = daemon.root / ".aegis" / "state"
    images = state / "agents" / ("0a" * 16) / "images"
    images.mkdir(parents=True, mode=0o700)
    for path, content in ((images / "1f.png", b"pixels"), (images.parent / "x.png", b"secret")):
        path.write_bytes(content)
        path.chmod(0o600)
    (images / "2f.png").symlink_to(state / "endpoint.json")
    assert image(daemon, images / "1f.png", keys) == (200, b"pixels")
    before = f"/the/root/before\n{images.relative_to(daemon.root.parent)}"  # it was moved since
    assert image(daemon, f"{before}/1f.png", keys) == (200, b"pixels")
    assert image(daemon, images / "1f.png", {**keys, "x-aegis-page": None})[0] == 403
    assert image(daemon, images / "1f.png", {**keys, "origin": "http://evil.example"})[0] == 403
    refused: tuple[Path | str, ...] = (
        *(images / "2f.png", images / "3f.png", images.parent / "x.png", state / "endpoint.json"),
        *(f"{images}/../x.png", f"{images}/../images/1f.png", images, "1f.png", "", "/etc/passwd"),
        str(images / "1f.png").removeprefix("/"),
        *(f"{before}/../images/1f.png", f"{before}/3f.png", f"{state}/agents/../endpoint.json"),
        f"/before/.aegis/other/{images.relative_to(state)}/1f.png",
    )
    for each in refused:
        assert image(daemon, each, keys)[0] == 404, each
    link = daemon.call("page_link", view="agent:anybody", label="reader", for_s=600)
    viewer = logged_in(daemon, link=link["url"].partition("#v=")[2])
    assert image(daemon, images / "1f.png", of_page(daemon, viewer))[0] == 403
