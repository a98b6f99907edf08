"""Installing an agent CLI: once, and with a reason where it is impossible."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.agents_real.clis import CLIS
from tests.agents_real.installed import NotInstalled, Package, cache, install

PACKAGE = Package("@some/cli", "1.2.3")


def test_each_cli_has_an_exact_version() -> None:
    for cli in CLIS:
        assert [part.isdigit() for part in cli.package.version.split(".")] == [True] * 3


def test_without_the_installer_the_reason_is_given(tmp_path: Path) -> None:
    with pytest.raises(NotInstalled, match=r"some-cli-1\.2\.3 is not installed: no-npm is missing"):
        install(PACKAGE, tmp_path, ["no-npm"])


def test_a_failed_installation_is_tried_again(tmp_path: Path) -> None:
    failing = ["sh", "-c", "echo x >>count; echo 'npm error network' >&2; exit 1"]
    for _ in range(2):
        with pytest.raises(NotInstalled, match="is not installed: npm error network"):
            install(PACKAGE, tmp_path, failing)
    assert (tmp_path / PACKAGE.slug / "count").read_text() == "x\n" * 2


def test_of_several_runners_one_installs_and_the_others_wait(tmp_path: Path) -> None:
    counting = ["sh", "-c", "echo x >>count; sleep 0.2"]
    threads = [
        threading.Thread(target=install, args=(PACKAGE, tmp_path, counting)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert (install(PACKAGE, tmp_path, ["no-npm"]) / "count").read_text() == "x\n"


def test_the_directory_is_chosen_by_a_variable_or_in_the_cache_of_the_user(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AEGIS_AGENT_CLIS", str(tmp_path / "clis"))
    assert cache() == tmp_path / "clis"
    monkeypatch.delenv("AEGIS_AGENT_CLIS")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache() == tmp_path / "aegis-actors" / "agent-clis"
