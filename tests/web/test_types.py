"""The types of the page's JavaScript, as its comments have them, checked by TypeScript."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.web.npm import npm_archive

pytestmark = pytest.mark.real

WEB = Path(__file__).resolve().parents[2] / "aegis" / "servers" / "web"
VERSION = "7.0.2"
# Its compiler is a program of its own, and needs no Node.js.
DIGESTS = {
    "x86_64": (
        "x64",
        "EYdf2cNg7rgCWJnxCdJ+F3V39O8ihb37eHAu1LK8oAFizgTQbPOK7zHHXbPt8rX24COqODXeI3sIf0fCXG7H/A==",
    ),
    "aarch64": (
        "arm64",
        "Qh4eU4/y3yDjnfjjyPYihMj5/ODIlmt+Bzu17OI+fiSRDW57QmU5SiN63exPRNJPKUzcc1INa1NXdrJ+MqHjUQ==",
    ),
}
OPTIONS: dict[str, Any] = {
    "allowJs": True,
    "checkJs": True,
    "noEmit": True,
    "strict": False,
    "skipLibCheck": True,
    "target": "es2024",
    "module": "esnext",
    "moduleResolution": "bundler",
    "types": [],
}


def unpack(archive: Path, target: Path, *suffixes: str) -> None:
    """Unpack a package's files, of these endings if any are given, below ``target``."""
    with tarfile.open(archive) as packed:
        for member in packed:
            place = target / Path(*Path(member.name).parts[1:])
            content = packed.extractfile(member) if member.isfile() else None
            if content is None or ".." in place.parts:
                continue
            if suffixes and not place.name.endswith((*suffixes, "package.json")):
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content.read())
            place.chmod(0o755 if place.name == "tsc" else 0o644)


@pytest.fixture(scope="module")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if platform.machine() not in DIGESTS:
        pytest.skip(f"TypeScript is not pinned for {platform.machine()}")
    name, digest = DIGESTS[platform.machine()]
    scratch = tmp_path_factory.mktemp("typescript")
    package = f"@typescript/typescript-linux-{name}"
    unpack(npm_archive(package, VERSION, digest, scratch), scratch / "compiler")
    return scratch / "compiler" / "lib" / "tsc"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the page's sources, beside the libraries that it imports."""
    scratch = tmp_path_factory.mktemp("page")
    pins = json.loads((WEB / "assets.json").read_text())["packages"]
    for name, pin in pins.items():
        digest = pin["integrity"].removeprefix("sha512-")
        archive = npm_archive(name, pin["version"], digest, scratch)
        unpack(archive, scratch / "node_modules" / name, ".d.ts", ".d.mts", ".d.cts", ".js", ".mjs")
    shutil.copytree(WEB / "page", scratch / "page")
    shutil.copytree(WEB / "static", scratch / "static")
    return scratch


def check(
    compiler: Path, root: Path, name: str, files: list[str], libraries: list[str]
) -> list[str]:
    """Return the errors."""
    document = {"compilerOptions": {**OPTIONS, "lib": libraries}, "include": files}
    configuration = root / f"{name}.json"
    configuration.write_text(json.dumps(document))
    words = [str(compiler), "--project", str(configuration), "--pretty", "false"]
    done = subprocess.run(words, cwd=root, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_the_types_of_the_page_fit(compiler: Path, page: Path) -> None:
    libraries = ["es2024", "dom", "dom.iterable"]
    errors = check(compiler, page, "page", ["page/**/*.js"], libraries)
    assert not errors, "\n".join(errors)


def test_the_types_of_its_worker_fit(compiler: Path, page: Path) -> None:
    errors = check(compiler, page, "worker", ["static/worker.js"], ["es2024", "webworker"])
    assert not errors, "\n".join(errors)


def test_the_check_sees_a_wrong_type(compiler: Path, page: Path) -> None:
    (page / "wrong.js").write_text("/** @type {number} */\nexport const size = 'large';\n")
    [error] = check(compiler, page, "wrong", ["wrong.js"], ["es2024"])
    assert "TS2322" in error
