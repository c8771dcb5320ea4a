"""The console's files: modules, style, pictures and the vendored libraries, read once, served as they are.

Everything a browser runs comes from here: the policy names no other host, no inline script and no inline style, and
with trusted types no text becomes markup.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable

from starlette.requests import Request
from starlette.responses import Response

KINDS = {
    "html": "text/html",
    "css": "text/css",
    "js": "text/javascript",
    "svg": "image/svg+xml",
    "txt": "text/plain",
    "json": "application/json",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'none'; "
    "base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)


@dataclass(frozen=True, slots=True)
class File:
    """The content of a file, its media type, and a tag that changes with its content."""

    content: bytes
    kind: str
    tag: str


def read(folder: Traversable, prefix: str = "") -> dict[str, File]:
    """All files below a folder by their path."""
    found: dict[str, File] = {}
    for one in folder.iterdir():
        if one.is_dir():
            found |= read(one, f"{prefix}{one.name}/")
        elif (kind := KINDS.get(one.name.rpartition(".")[2])) is not None:
            content = one.read_bytes()
            found[prefix + one.name] = File(content, kind, f'"{hashlib.sha256(content).hexdigest()[:20]}"')
    return found


class Files:
    """The handlers of ``/`` and of ``/console/...``."""

    def __init__(self, files: dict[str, File] | None = None) -> None:
        own = resources.files("warrenmq.http.console").joinpath("static")
        self._files = read(own) if files is None else files

    async def page(self, request: Request) -> Response:
        return self._answer("index.html", request)

    async def file(self, request: Request) -> Response:
        return self._answer(request.path_params["path"], request)

    def _answer(self, path: str, request: Request) -> Response:
        found = self._files.get(path)
        if found is None:
            return Response(status_code=404)
        headers = {"etag": found.tag, "cache-control": "no-cache", "content-security-policy": POLICY}
        if request.headers.get("if-none-match") == found.tag:
            return Response(status_code=304, headers=headers)
        return Response(found.content, media_type=found.kind, headers=headers)
