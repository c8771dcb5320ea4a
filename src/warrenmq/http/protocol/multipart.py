"""The part called ``file`` of a multipart form: all that uploads of definitions need."""

from __future__ import annotations

from email.parser import BytesParser
from email.policy import HTTP

from warrenmq.http.errors import bad_request


def file_of(content_type: str, body: bytes) -> bytes:
    message = BytesParser(policy=HTTP).parsebytes(b"content-type: " + content_type.encode() + b"\r\n\r\n" + body)
    for part in message.iter_parts():
        if part.get_param("name", header="content-disposition") == "file":
            content = part.get_payload(decode=True)
            if isinstance(content, bytes):
                return content
    raise bad_request("failed_to_parse_json")
