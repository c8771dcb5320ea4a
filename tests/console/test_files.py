"""The console's files: whole, of known origin, typed, linted, and without a way from text to markup."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from scripts import vendor
from starlette.requests import Request
from starlette.responses import Response

from warrenmq.http.console.files import KINDS, File, Files

ROOT = Path(__file__).parents[2]
CONSOLE = ROOT / "src" / "warrenmq" / "http" / "console"
STATIC = CONSOLE / "static"
MODULES = ROOT / "tests" / "clients" / "node_modules"
OWN = [path for path in sorted(STATIC.rglob("*.js")) if path.parent.name != "vendor"]

IMPORTED = re.compile(r'^import [^"]*"([^"]+)";$|import\("([^"]+)"\)', re.MULTILINE)


def asked(files: Files, path: str, tag: str = "") -> Response:
    scope = {"type": "http", "headers": [(b"if-none-match", tag.encode())], "path_params": {"path": path}}
    return asyncio.run(files.file(Request(scope)))


@pytest.mark.pure
def test_every_file_is_served_with_its_kind_and_a_policy_without_inline_scripts() -> None:
    files = Files()
    page = asked(files, "index.html")
    policy, text = page.headers["content-security-policy"], bytes(page.body).decode()
    assert "unsafe" not in policy and "script-src 'self'" in policy
    assert re.findall(r"<script[^>]*>([^<]*)</script>", text) == [""]
    assert "<style" not in text and "style=" not in text and not re.search(r"\son\w+=", text)
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", text)
    for path in (one for one in STATIC.rglob("*") if one.is_file() and not one.name.endswith(".d.ts")):
        answer = asked(files, str(path.relative_to(STATIC)))
        assert answer.status_code == 200 and answer.body == path.read_bytes(), path
        assert answer.headers["content-type"].startswith(KINDS[path.suffix[1:]])


@pytest.mark.pure
def test_a_file_is_sent_once_and_found_in_the_console_alone() -> None:
    files = Files({"a.js": File(b"1", "text/javascript", '"x"')})
    assert asked(files, "a.js", '"x"').status_code == 304
    assert asked(files, "a.js", '"y"').body == b"1"
    for path in ("none.js", "../console.css", "../__init__.py", "tsconfig.json", ""):
        assert asked(files, path).status_code == 404


@pytest.mark.pure
def test_the_libraries_are_those_that_were_fetched_with_their_licences() -> None:
    assert vendor.differing(STATIC / "vendor") == []
    for name, _, _, _ in vendor.PACKAGES:
        assert (STATIC / "vendor" / f"{name.rpartition('/')[2]}.LICENSE.txt").stat().st_size > 500


@pytest.mark.pure
def test_no_module_makes_markup_of_text_or_asks_another_host() -> None:
    sinks = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|dangerouslySet|\beval\(|new Function|srcdoc|https?://"
    )
    for path in OWN:
        assert sinks.findall(path.read_text()) == [], path
    for path in OWN:
        for imported in IMPORTED.findall(path.read_text()):
            imported = "".join(imported)
            assert imported.startswith(".") and (path.parent / imported).is_file(), (path, imported)


@pytest.mark.pure
def test_every_place_of_the_menu_has_its_module_and_every_module_its_place() -> None:
    named = set(re.findall(r'import\("\./pages/(\w+)\.js"\)', (STATIC / "places.js").read_text()))
    assert named == {path.stem for path in (STATIC / "pages").glob("*.js")}


def tool(name: str, *arguments: str) -> None:
    if shutil.which("node") is None or not (MODULES / name).is_dir():
        pytest.skip(f"{name} is missing (cd tests/clients && npm install): the console's modules are not checked")
    done = subprocess.run([*arguments], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_modules_types_fit() -> None:
    tool("typescript", "node", str(MODULES / "typescript/bin/tsc"), "-p", str(CONSOLE / "tsconfig.json"))


def test_the_modules_are_linted() -> None:
    tool("oxlint", str(MODULES / ".bin/oxlint"), "--deny-warnings", "--ignore-pattern", "**/vendor/**", str(STATIC))
