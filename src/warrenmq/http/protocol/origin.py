"""Where a browser's request comes from: a page of another origin changes nothing here, whoever's password it has.

Browsers add cached credentials to whatever a page sends, so a form on any page of the web could otherwise do what the
person before the browser may do. A browser says where a request comes from (``Origin``, ``Sec-Fetch-Site``), and what
says neither is no browser: curl and scripts are left alone.

Duty: the judgement over the headers of one request. Not here: who asks (``auth.py``).
"""

from __future__ import annotations

from starlette.datastructures import Headers

from warrenmq.http.errors import ApiError
from warrenmq.server.kinds import normal_origin

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
OURS = frozenset({"same-origin", "none"})  # none: typed into the address bar


def check(headers: Headers, scheme: str, allowed: list[str], upload: bool) -> None:
    """Raise unless this request, which changes something, comes from no browser, from our own page or from an origin
    in ``allowed``, and says that its body is JSON (or a form, where an ``upload`` is taken)."""
    if not _by_browser(headers):
        return
    origin = headers.get("origin")
    if origin is not None:
        said = normal_origin(origin)
        if said is None or (said not in allowed and said != normal_origin(f"{scheme}://{headers.get('host', '')}")):
            raise _foreign(origin)
    elif headers.get("sec-fetch-site", "cross-site") not in OURS:
        raise _foreign(f"a {headers.get('sec-fetch-site', 'cross-site')} page")
    if _has_body(headers):
        _check_type(headers.get("content-type", ""), upload)


def _by_browser(headers: Headers) -> bool:
    return "origin" in headers or any(name.startswith("sec-fetch-") for name in headers)


def _foreign(origin: str) -> ApiError:
    return ApiError(
        403,
        "forbidden",
        f"a browser sent this from {origin[:200]}: changes are taken from the broker's own page and from the origins "
        "in the setting http_origins",
    )


def _has_body(headers: Headers) -> bool:
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers


def _check_type(content_type: str, upload: bool) -> None:
    kind = content_type.partition(";")[0].strip().lower()
    if kind != "application/json" and not (upload and kind == "multipart/form-data"):
        raise ApiError(415, "unsupported_media_type", "from a browser the body's content-type is application/json")
