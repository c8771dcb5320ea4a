"""The password or token with which a process logs in, and new tokens for connections that outlive theirs.

Duty: the secret is fetched where it is needed, anew for every connection; what a plan, a checkpoint or a partition
holds is only where it comes from. A token (``tokenFile``, ``tokenCommand``) runs out: ``Login.refresh``, called between
two uses of a connection, sends the next one with connection.update-secret in time. Not here: connecting.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import shlex
import subprocess
import time
from collections.abc import Callable

from warrenmq.client import Connection
from warrenmq.spark.options import OptionError, Options

COMMAND_SECONDS = 60.0
BEFORE = 60.0  # seconds before a token's end at which the next one is fetched, if it lives so long
AGAIN = 5.0  # seconds after which a token that was not replaced yet is looked for again
UNKNOWN = 300.0  # seconds after which a token that does not say its end is fetched again

log = logging.getLogger("warrenmq.spark")


def password(options: Options) -> str:
    """Looked up where the code runs: a worker needs the variable, the file or the command too."""
    if options.secret is not None:
        return options.secret
    if options.password_env is not None:
        value = os.environ.get(options.password_env)
        if value is None:
            raise OptionError(
                f"passwordEnv names the environment variable {options.password_env}, which is not set here"
            )
        return value
    if options.password_file is not None:
        return _from_file("passwordFile", options.password_file).rstrip("\r\n")
    if options.token_file is not None:
        return _some("tokenFile", _from_file("tokenFile", options.token_file))
    if options.token_command is not None:
        return _some("tokenCommand", _from_command(options.token_command))
    if options.username == "guest":
        return "guest"  # no secret: the documented default, accepted on loopback only
    raise OptionError(f"no password for user '{options.username}': give option 'passwordEnv' or 'passwordFile'")


def _from_file(name: str, path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise OptionError(f"{name} {path} cannot be read: {error.strerror}") from None


def _from_command(command: str) -> str:
    """What it prints. Neither the command nor its output is ever told: both may be secret."""
    try:
        words = shlex.split(command)
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=COMMAND_SECONDS)
    except (OSError, IndexError) as error:
        raise OptionError(f"tokenCommand cannot be run here: {getattr(error, 'strerror', 'it is empty')}") from None
    except ValueError:
        raise OptionError("tokenCommand has a quotation mark that is not closed") from None
    except subprocess.TimeoutExpired:
        raise OptionError(f"tokenCommand took longer than {COMMAND_SECONDS:g} s") from None
    if done.returncode:
        raise OptionError(f"tokenCommand ended with status {done.returncode}")
    return done.stdout.decode("utf-8", "replace")


def _some(name: str, text: str) -> str:
    if not text.strip():
        raise OptionError(f"{name} gave no token")
    return text.strip()


def expiry(token: str) -> float | None:
    """When a JSON web token ends (its ``exp``, in seconds since 1970); None for any other token."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return float(claims["exp"])
    except (ValueError, KeyError, TypeError):
        return None


class Login:
    """The token of one connection. Without a token, nothing happens."""

    def __init__(self, options: Options, connection: Connection, clock: Callable[[], float] = time.time) -> None:
        self._options = options
        self._connection = connection
        self._clock = clock
        self._token = connection.address.password
        self.runs_out = options.token_file is not None or options.token_command is not None
        self._due = self._next() if self.runs_out else float("inf")

    def refresh(self) -> None:
        """Send the next token if it is time to. Raises what any use of a lost connection raises."""
        if self._clock() < self._due:
            return
        try:
            token = password(self._options)
        except OptionError as error:  # the one in use may be good for a while
            log.warning("the token for %s was not refreshed: %s", self._options.address, error)
            token = self._token
        if token == self._token:
            self._due = self._clock() + min(AGAIN, self._options.token_refresh or AGAIN)
            return
        self._connection.update_secret(token, "the token is about to run out")
        self._token = token
        self._due = self._next()

    def _next(self) -> float:
        now = self._clock()
        due = now + (self._options.token_refresh or UNKNOWN)
        end = expiry(self._token)
        if end is None:
            return due
        in_time = max(now, min(end - BEFORE, now + (end - now) * 2 / 3))
        return in_time if self._options.token_refresh is None else min(due, in_time)
