"""Settings in environment variables: Warren's own, those of RabbitMQ's image, and what only looks like one.

Duty: which variable says which setting, the ``_FILE`` forms that name a file with the value, and the variables that
Kubernetes puts into every pod beside a Service called ``warren``, which are no settings whatever they are called.
Not here: what values are allowed (``config.py``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from warrenmq.server.kinds import SettingsError

PREFIX = "WARREN_"
CONFIG_VARIABLE = "WARREN_CONFIG"
CONFIG_OF_RABBITMQ = "RABBITMQ_CONFIG_FILE"

OTHER_VARIABLES = frozenset(
    PREFIX + name for name in ("CONFIG", "URL", "HTTP_URL", "CTL_URL", "PURE", "NO_COMPILE", "OPT_LEVEL")
)
"""Variables with the broker's prefix that are no settings of it: where the file is, where the other commands find a
broker, and how the package runs and builds."""

TEST_PREFIXES = ("WARREN_TEST_", "WARREN_SOAK_", "WARREN_DIFFERENTIAL_")
"""Kept for test suites; never settings, so that a broker started by a test does not trip over them."""

OF_A_FILE = "_FILE"
SECRETS = ("default_user", "default_pass", "default_vhost")
"""Settings whose value may stand in a file that a variable names, as container engines hand secrets over."""

_KUBERNETES = re.compile(r"(\w+_)?(SERVICE_(HOST|PORT(_\w+)?)|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)")
_KUBERNETES_ADDRESS = re.compile(r"(tcp|udp|sctp)://\S+:\d+")


def variable(name: str) -> str:
    """The variable of a setting."""
    return PREFIX + name.upper()


def of_kubernetes(name: str, value: str) -> bool:
    """Is this a variable that Kubernetes sets for a Service called ``warren``, or ``warren-`` and something?

    They are ``WARREN_SERVICE_HOST``, ``WARREN_SERVICE_PORT``, ``WARREN_SERVICE_PORT_AMQP``,
    ``WARREN_PORT=tcp://10.0.0.7:5672``, ``WARREN_PORT_5672_TCP_ADDR`` and their like; for a Service ``warren-http``
    one is even called as the setting ``WARREN_HTTP_PORT`` is, and only its value tells the two apart.
    """
    rest = name.removeprefix(PREFIX)
    if _KUBERNETES.fullmatch(rest):
        return True
    return (rest == "PORT" or rest.endswith("_PORT")) and bool(_KUBERNETES_ADDRESS.fullmatch(value))


def settings_in(environment: Mapping[str, str], names: Iterable[str]) -> tuple[dict[str, tuple[str, str]], list[str]]:
    """What the environment says about these settings, each with the variable that said it; and unknown variables."""
    known = {variable(name): name for name in names}
    files = {variable(name) + OF_A_FILE: name for name in SECRETS}
    found: dict[str, tuple[str, str]] = {}
    unknown: list[str] = []
    for name in SECRETS:  # as RabbitMQ's image reads them; empty is as good as not there
        _take(found, environment, name, "RABBITMQ_" + name.upper(), empty=False)
    for one in sorted(environment):
        if not one.startswith(PREFIX) or one in OTHER_VARIABLES or one.startswith(TEST_PREFIXES):
            continue
        if of_kubernetes(one, environment[one]):
            continue
        if one in known:
            if known[one] not in SECRETS:
                found[known[one]] = environment[one], one
        elif one not in files:
            unknown.append(one)
    for name in SECRETS:
        _take(found, environment, name, variable(name), empty=True)
    return found, unknown


def _take(
    found: dict[str, tuple[str, str]], environment: Mapping[str, str], name: str, variable: str, empty: bool
) -> None:
    """One setting that a variable may say, or a file that another one names."""
    file = variable + OF_A_FILE
    given, named = environment.get(variable), environment.get(file)
    if given is not None and (given or empty) and named:
        raise SettingsError(f"{variable} and {file} are both set; allowed: one of them")
    if named:
        found[name] = _content(file, named), file
    elif given is not None and (given or empty):
        found[name] = given, variable


def _content(variable: str, file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as error:
        raise SettingsError(f"{variable}: {file} cannot be read ({error.strerror}); allowed: a file") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{variable}: {file} is no text in UTF-8; allowed: a file with one line") from None
