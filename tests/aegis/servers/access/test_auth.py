from __future__ import annotations

import base64
import json
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.errors import InvalidRequest, NotFound, StartupError
from aegis.servers.access.auth import (
    KEYS_FILE,
    Keys,
    Secrets,
    decode,
    encode,
    new_secret,
    open_keys,
)
from aegis.servers.calls import OPERATOR, Identity

ALICE = Identity(handle="alice", operator=False)


def test_keys_are_made_once_and_survive_a_restart(tmp_path: Path) -> None:
    first = open_keys(tmp_path)
    secret = first.session_secret("alice")
    second = open_keys(tmp_path)
    assert second.operator_token == first.operator_token
    assert second.session_secret("alice") == secret


def test_the_file_is_for_its_owner_only_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    open_keys(tmp_path).session_secret("alice")
    assert [path.name for path in tmp_path.iterdir()] == [KEYS_FILE]
    assert stat.S_IMODE((tmp_path / KEYS_FILE).stat().st_mode) == 0o600


def test_a_file_that_others_may_read_is_closed_to_them(tmp_path: Path) -> None:
    open_keys(tmp_path)
    (tmp_path / KEYS_FILE).chmod(0o644)
    open_keys(tmp_path)
    assert stat.S_IMODE((tmp_path / KEYS_FILE).stat().st_mode) == 0o600


def test_the_token_is_the_operator_and_nothing_else_is(tmp_path: Path) -> None:
    keys = open_keys(tmp_path)
    token = keys.operator_token
    assert keys.identity_of_token(token) == OPERATOR
    others = ["", token[:-1], f"{token}x", token.swapcase(), keys.session_secret("a"), "\udcff"]
    for other in others:
        assert keys.identity_of_token(other) is None


def test_a_session_secret_is_its_handle_and_nothing_else_is(tmp_path: Path) -> None:
    keys = open_keys(tmp_path)
    alice, bob = keys.session_secret("alice"), keys.session_secret("bob")
    assert keys.identity_of_session(alice) == Identity(handle="alice", operator=False)
    assert keys.identity_of_session(bob) == Identity(handle="bob", operator=False)
    for other in ["", alice[:-1], f"{alice}x", keys.operator_token, "\udcff"]:
        assert keys.identity_of_session(other) is None


def test_handles_are_told_apart_ignoring_case(tmp_path: Path) -> None:
    keys = open_keys(tmp_path)
    assert keys.session_secret("Alice") == keys.session_secret("aLICE")
    identity = keys.identity_of_session(keys.session_secret("ALICE"))
    assert identity == Identity(handle="Alice", operator=False)


@pytest.mark.parametrize("handle", ["", "human", "ALL", "a b", "../x", "é"])
def test_what_cannot_be_a_handle_gets_no_session(tmp_path: Path, handle: str) -> None:
    with pytest.raises(InvalidRequest):
        open_keys(tmp_path).session_secret(handle)


def test_a_disk_that_refuses_leaves_no_session_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = open_keys(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", _full_disk)
        with pytest.raises(OSError, match="full"):
            keys.session_secret("alice")
    assert [path.name for path in tmp_path.iterdir()] == [KEYS_FILE]
    assert open_keys(tmp_path).session_secret("alice") == open_keys(tmp_path).session_secret(
        "alice"
    )


def _full_disk(_: int) -> None:
    raise OSError(28, "full")


def test_new_keys_are_on_the_disk_before_they_take_the_place_of_the_old_and_are_given_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = open_keys(tmp_path)
    before = (tmp_path / KEYS_FILE).read_bytes()
    steps: list[tuple[str, bool]] = []

    def sync(descriptor: int) -> None:
        synced = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        kind = "directory" if synced == tmp_path else "file"
        steps.append((kind, (tmp_path / KEYS_FILE).read_bytes() == before))

    monkeypatch.setattr("os.fsync", sync)
    keys.session_secret("alice")
    assert steps == [("file", True), ("directory", False)]


def test_threads_asking_for_one_handle_get_one_secret(tmp_path: Path) -> None:
    keys = open_keys(tmp_path)
    got: list[str] = []
    threads = [
        threading.Thread(target=lambda: got.append(keys.session_secret("a"))) for _ in "1234"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(got)) == 1
    assert open_keys(tmp_path).session_secret("a") == got[0]


def test_no_secret_shows_in_a_repr(tmp_path: Path) -> None:
    keys = open_keys(tmp_path)
    secret = keys.session_secret("alice")
    shown = repr(keys) + repr(Secrets()) + repr(decode((tmp_path / KEYS_FILE).read_bytes()))
    assert secret not in shown
    assert keys.operator_token not in shown


def test_secrets_hold_256_random_bits() -> None:
    made = {new_secret() for _ in range(100)}
    assert len(made) == 100
    assert all(len(base64.urlsafe_b64decode(f"{secret}=")) == 32 for secret in made)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff",
        b"[]",
        b"{}",
        b'{"version":2}',
        b'{"version":1,"operator":"short","sessions":{}}',
        json.dumps({"version": 1, "operator": "x" * 43}).encode(),
        json.dumps({"version": 1, "operator": "x" * 43, "sessions": {"a b": "y" * 43}}).encode(),
        json.dumps({"version": 1, "operator": "x" * 43, "sessions": {"a": None}}).encode(),
    ],
)
def test_a_damaged_file_is_not_overwritten_but_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / KEYS_FILE).write_bytes(content)
    with pytest.raises(StartupError, match="damaged") as caught:
        open_keys(tmp_path)
    assert "remove it to get new keys" in str(caught.value)
    assert (tmp_path / KEYS_FILE).read_bytes() == content


def test_a_symlink_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("{}")
    (tmp_path / KEYS_FILE).symlink_to(tmp_path / "other")
    with pytest.raises(StartupError, match="cannot use"):
        open_keys(tmp_path)


def test_a_missing_directory_is_told(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="No such file"):
        open_keys(tmp_path / "nowhere")


@given(
    st.dictionaries(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", fullmatch=True), st.none())
)
def test_keys_read_back_as_written(handles: dict[str, None]) -> None:
    held = Secrets(sessions=dict.fromkeys(handles, new_secret()))
    assert decode(encode(held)) == held


def test_a_renewed_token_is_another_and_the_old_one_nothing(tmp_path: Path) -> None:
    keys = open_keys(tmp_path)
    old, secret = keys.operator_token, keys.session_secret("alice")
    assert keys.renew_token() == OPERATOR
    assert keys.identity_of_token(old) is None
    assert keys.identity_of_token(keys.operator_token) == OPERATOR
    assert keys.identity_of_session(secret) == ALICE
    again = open_keys(tmp_path)
    assert again.operator_token == keys.operator_token
    assert again.session_secret("alice") == secret


def test_a_renewed_session_is_another_and_the_others_stay(tmp_path: Path) -> None:
    keys = open_keys(tmp_path)
    old, bobs = keys.session_secret("alice"), keys.session_secret("bob")
    assert keys.renew_session("ALICE") == ALICE
    assert keys.identity_of_session(old) is None
    assert keys.identity_of_session(keys.session_secret("alice")) == ALICE
    assert keys.session_secret("bob") == bobs
    assert open_keys(tmp_path).session_secret("alice") == keys.session_secret("alice") != old


def test_a_removed_session_is_gone_until_it_is_asked_for(tmp_path: Path) -> None:
    keys = open_keys(tmp_path)
    old = keys.session_secret("alice")
    keys.session_secret("Bob")
    assert keys.remove_session("alice") == ALICE
    assert (keys.identity_of_session(old), keys.handles) == (None, ["Bob"])
    assert open_keys(tmp_path).handles == ["Bob"]
    assert keys.session_secret("alice") != old
    for change in (keys.remove_session, keys.renew_session):
        with pytest.raises(NotFound, match="'carol' has no session"):
            change("carol")


def test_all_keys_renewed_are_all_void(tmp_path: Path) -> None:
    keys = open_keys(tmp_path)
    token, secrets = keys.operator_token, [keys.session_secret(name) for name in ("alice", "bob")]
    assert keys.renew_all() == [OPERATOR, ALICE, attrs.evolve(ALICE, handle="bob")]
    assert keys.identity_of_token(token) is None
    assert [keys.identity_of_session(secret) for secret in secrets] == [None, None]
    assert keys.handles == ["alice", "bob"]


@pytest.mark.parametrize(
    "change",
    [
        lambda keys: keys.renew_token(),
        lambda keys: keys.renew_all(),
        lambda keys: keys.renew_session("alice"),
        lambda keys: keys.remove_session("alice"),
    ],
)
def test_a_disk_that_refuses_voids_nothing(
    tmp_path: Path, change: Callable[[Keys], object]
) -> None:
    keys = open_keys(tmp_path)
    token, secret = keys.operator_token, keys.session_secret("alice")
    (tmp_path / "keys.json.new" / "in the way").mkdir(parents=True)
    with pytest.raises(FileExistsError, match=r"keys\.json\.new"):
        change(keys)
    assert keys.identity_of_token(token) == OPERATOR
    assert keys.identity_of_session(secret) == ALICE
    assert open_keys(tmp_path).operator_token == token


def test_the_tools_of_a_session_are_kept_with_its_secret(tmp_path: Path) -> None:
    keys = open_keys(tmp_path)
    secret = keys.session_secret("Alice", ["core", "spawn"])
    bobs = keys.session_secret("bob")
    assert (keys.tools("alice"), keys.tools("bob")) == (("core", "spawn"), ("work",))
    assert keys.session_secret("alice") == secret  # without a choice, nothing changes
    again = open_keys(tmp_path)
    assert (again.tools("ALICE"), again.tools("bob")) == (("core", "spawn"), ("work",))
    assert again.session_secret("alice", ["term_run"]) == secret
    assert again.session_secret("bob", ["core"]) == bobs
    again.renew_session("alice")
    again.renew_all()
    last = open_keys(tmp_path)
    assert (last.tools("alice"), last.tools("bob")) == (("term_run",), ("core",))


def test_a_revoked_session_leaves_no_choice_to_the_next(tmp_path: Path) -> None:
    keys = open_keys(tmp_path)
    keys.session_secret("alice", ["core"])
    keys.remove_session("alice")
    assert keys.tools("alice") == ("work",)
    keys.session_secret("alice")
    assert open_keys(tmp_path).tools("alice") == ("work",)


def test_a_file_without_tools_is_read_and_the_default_is_not_written(tmp_path: Path) -> None:
    keys = open_keys(tmp_path)
    keys.session_secret("alice", ["core"])
    keys.session_secret("alice", ["work"])
    assert "tools" not in json.loads(keys.path.read_text())


@pytest.mark.parametrize("tools", [[], {"bob": ["core"]}, {"alice": "core"}, {"alice": [5]}])
def test_a_file_with_broken_tools_is_damaged(tmp_path: Path, tools: object) -> None:
    keys = open_keys(tmp_path)
    keys.session_secret("alice")
    document = {**json.loads(keys.path.read_text()), "tools": tools}
    keys.path.write_text(json.dumps(document))
    with pytest.raises(StartupError, match="tools of"):
        open_keys(tmp_path)
