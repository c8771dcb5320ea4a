"""Which user a client certificate stands for, when it logs in with EXTERNAL.

Duty: the certificate's part that is the name, in RabbitMQ's words. Not here: whether the certificate is believed, which
OpenSSL has decided before (``tls.py``), and whether there is such a user (``broker/connection/login.py``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

ALTERNATIVE = {"dns": "DNS", "ip": "IP Address", "email": "email", "uri": "URI"}
USERS_OF_A_CERTIFICATE = ("common_name", "distinguished_name", *ALTERNATIVE)

#: how RFC 4514 and RabbitMQ call the parts of a name; others keep OpenSSL's word
SHORT = {
    "commonName": "CN",
    "countryName": "C",
    "domainComponent": "DC",
    "emailAddress": "EMAILADDRESS",
    "givenName": "GIVENNAME",
    "initials": "INITIALS",
    "localityName": "L",
    "name": "NAME",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "pseudonym": "PSEUDONYM",
    "serialNumber": "SERIALNUMBER",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "surname": "SN",
    "title": "TITLE",
}
_SPECIAL = re.compile(r'([,+"\\<>;])')


def user_of(certificate: Mapping[str, Any] | None, where: str) -> str:
    """As ``ssl.SSLObject.getpeercert`` has it; empty where there is none, or no such part in it."""
    if not certificate:
        return ""
    subject = certificate.get("subject", ())
    if where == "distinguished_name":
        return distinguished_name(subject)
    if where == "common_name":
        found = [str(value) for part in subject for name, value in part if name == "commonName"]
    else:
        named = certificate.get("subjectAltName", ())
        found = [str(value) for kind, value in named if kind == ALTERNATIVE[where]]
    return found[0] if found else ""


def distinguished_name(subject: Any) -> str:
    """The last part first, as in ``CN=amy,O=our company``."""
    parts = ["+".join(f"{SHORT.get(name, name)}={_escaped(value)}" for name, value in part) for part in subject]
    return ",".join(reversed(parts))


def _escaped(value: str) -> str:
    value = _SPECIAL.sub(r"\\\1", value)
    if value.startswith((" ", "#")):
        value = "\\" + value
    return value[:-1] + "\\ " if len(value) > 1 and value.endswith(" ") else value
