"""Fetches the console's libraries from the npm registry into src/warrenmq/http/console/static/vendor, as they are.

``python scripts/vendor.py`` writes them; with ``--check`` it only says whether what is there is what ``versions.json``
says. A package is taken when its archive has the checksum below. Of a module only what a browser cannot find without a
build step is changed: the bare name in an import, and the name of a source map that is not shipped.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "src" / "warrenmq" / "http" / "console" / "static" / "vendor"

#: package, version, checksum of its archive, files of it by the name they get here
PACKAGES = (
    (
        "preact",
        "11.2.0",
        "sha512-/HfHI/7N84e6GrWBJ3J280z3mLaRJiDcSvj/A+y/4AbLnND/1UlGHe1sR6oYuTGwId0nP7dqDU9OnLxMPZ7xBg==",
        {"preact.js": "dist/preact.mjs", "hooks.js": "hooks/dist/hooks.mjs"},
    ),
    (
        "htm",
        "3.1.1",
        "sha512-983Vyg8NwUE7JkZ6NmOqpCZ+sh1bKv2iYTlUkzlWmA5JD2acKoxd4KVxbMmxX/85mtfdnDmTFoNKcg5DGAvxNQ==",
        {"htm.js": "dist/htm.module.js"},
    ),
    (
        "uplot",
        "1.6.32",
        "sha512-KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw==",
        {"uplot.js": "dist/uPlot.esm.js", "uplot.css": "dist/uPlot.min.css"},
    ),
    (
        "@dagrejs/dagre",
        "3.1.3",
        "sha512-X4aUTwOReZvthaZWOVHqlJ52/ZdhZFEM4+Lh/uR4XooUSLE6p71bcy7MPGzYnNUcNh+nj+i/qJQpCMIdQnSmrg==",
        {"dagre.js": "dist/dagre.esm.js"},
    ),
)


def main() -> int:
    if "--check" in sys.argv:
        wrong = differing(FOLDER)
        print("\n".join(wrong) or "the vendored files are as versions.json says")
        return 1 if wrong else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    written: list[dict[str, object]] = []
    for name, version, integrity, files in PACKAGES:
        members = fetched(name, version, integrity)
        about = json.loads(members["package/package.json"])
        licence = f"{name.rpartition('/')[2]}.LICENSE.txt"
        contents = {licence: members["package/LICENSE"]}
        for here, there in files.items():
            contents[here] = for_a_browser(members[f"package/{there}"])
        for here, content in contents.items():
            (FOLDER / here).write_bytes(content)
        sums = {here: hashlib.sha256(content).hexdigest() for here, content in contents.items()}
        written.append(
            {"name": name, "version": version, "licence": about["license"], "integrity": integrity, "sha256": sums}
        )
    (FOLDER / "versions.json").write_text(json.dumps(written, indent=2) + "\n")
    return 0


def fetched(name: str, version: str, integrity: str) -> dict[str, bytes]:
    """The files of a package by their paths."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", "--silent", f"{name}@{version}"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        archive = next(Path(folder).iterdir()).read_bytes()
    found = "sha512-" + base64.b64encode(hashlib.sha512(archive).digest()).decode()
    if found != integrity:
        raise SystemExit(f"{name} {version}: the archive is {found}, not {integrity}")
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {one.name: tar.extractfile(one).read() for one in tar.getmembers() if one.isfile()}  # type: ignore[union-attr]


def for_a_browser(content: bytes) -> bytes:
    text = content.decode().replace('from"preact"', 'from"./preact.js"')
    lines = [line for line in text.splitlines() if not line.startswith("//# sourceMappingURL=")]
    return ("\n".join(lines) + "\n").encode()


def differing(folder: Path) -> list[str]:
    """A line for each file that is missing, changed, or from nowhere."""
    packages = json.loads((folder / "versions.json").read_text())
    known = {here: sum for package in packages for here, sum in package["sha256"].items()}
    there = {one.name for one in folder.iterdir() if not one.name.endswith(".d.ts")} - {"versions.json"}
    wrong = [f"{name}: in no package" for name in sorted(there - set(known))]
    for name, sum in known.items():
        if name not in there:
            wrong.append(f"{name}: missing")
        elif hashlib.sha256((folder / name).read_bytes()).hexdigest() != sum:
            wrong.append(f"{name}: changed")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
