"""The steps of a container file, carried out in folders made with debootstrap, where no container engine is.

Duty: a base that stands in for the image that a stage names (the same release of Debian with its own Python, called
`python` as there), and COPY, RUN, ENV, ARG, USER, WORKDIR as an engine would do them, with chroot.
Not here: isolation of any kind. The network is that of the machine.
"""

from __future__ import annotations

import fnmatch
import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.packaging.dockerfile import Instruction, Stage

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
MIRROR = "http://deb.debian.org/debian"
#: what pip finds its packages by, where that is set on this machine
HANDED_ON = (
    *("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
    *("http_proxy", "https_proxy", "no_proxy"),
)


def make_base(release: str, folder: Path) -> None:
    """A minimal Debian with Python, pip and venv, and nothing else; a copy of one that is named as ready."""
    ready = os.environ.get("WARREN_TEST_DEBIAN")
    packages = "python3,python3-dev,python3-pip,python3-venv,ca-certificates"  # the image has the headers too
    make = ["debootstrap", "--variant=minbase", f"--include={packages}", release, str(folder), MIRROR]
    copy = ["cp", "-a", "--reflink=auto", f"{ready}/.", str(folder)]
    subprocess.run(copy if ready else make, check=True, stdout=subprocess.DEVNULL)
    for name in ("python", "python3"):
        (folder / "usr/local/bin" / name).symlink_to("/usr/bin/python3")
    for marker in (folder / "usr/lib").glob("python3*/EXTERNALLY-MANAGED"):
        marker.unlink()  # the image has a Python of its own, which pip may install into
    shutil.copy("/etc/resolv.conf", folder / "etc/resolv.conf")
    bundle = folder / "etc/ssl/certs/ca-certificates.crt"
    shutil.copy("/etc/ssl/certs/ca-certificates.crt", bundle)  # also of a proxy that this machine trusts
    for device in ("null", "urandom", "random", "zero"):
        target = folder / "dev" / device
        if not target.exists():
            os.mknod(target, 0o20666, os.stat(f"/dev/{device}").st_rdev)


class CleanRoot:
    """One stage being built, or built."""

    def __init__(self, folder: Path, base: Path, context: Path, others: Mapping[str, CleanRoot]) -> None:
        subprocess.run(["cp", "-a", "--reflink=auto", str(base), str(folder)], check=True)
        self.folder, self.context, self.others = folder, context, others
        self.environment = {"PATH": PATH}
        self.arguments: dict[str, str] = {}
        self.user, self.workdir = "0", "/"

    def build(self, stage: Stage) -> CleanRoot:
        for one in stage.instructions:
            step = getattr(self, f"_{one.word.lower()}", None)
            if step is not None:
                step(one)
        return self

    def command(self, words: list[str], user: str | None = None) -> list[str]:
        """These words as a command of this machine that runs them in there."""
        number = self.user if user is None else user
        inside = ["sh", "-c", f'cd {shlex.quote(self.workdir)} && exec "$@"', "sh", *words]
        environment = [f"{name}={value}" for name, value in {**self.arguments, **self.environment}.items()]
        return ["chroot", f"--userspec={number}:{number}", str(self.folder), "env", "-i", *environment, *inside]

    def run(self, words: list[str], **more: str) -> subprocess.CompletedProcess[str]:
        command = self.command(words)
        at = command.index("-i") + 1
        command[at:at] = [f"{name}={value}" for name, value in more.items()]
        return subprocess.run(command, text=True, capture_output=True, stdin=subprocess.DEVNULL)

    def _arg(self, one: Instruction) -> None:
        name, _, value = one.rest.partition("=")
        self.arguments[name] = value

    def _env(self, one: Instruction) -> None:
        for pair in shlex.split(one.rest):
            name, _, value = pair.partition("=")
            self.environment[name] = value.replace("$PATH", self.environment["PATH"])

    def _user(self, one: Instruction) -> None:
        self.user = one.rest

    def _workdir(self, one: Instruction) -> None:
        self.workdir = one.rest
        self._inside(one.rest).mkdir(parents=True, exist_ok=True)

    def _copy(self, one: Instruction) -> None:
        *sources, target = one.rest.split()
        here = self.others[one.flags["from"]].folder if "from" in one.flags else self.context
        place = self._inside(os.path.join(self.workdir, target))
        for source in sources:
            path = here / source.lstrip("/")
            if path.is_dir():  # what is in it, as an engine does
                shutil.copytree(path, place, symlinks=True, dirs_exist_ok=True, ignore=self._ignored)
            else:
                shutil.copy(path, place / path.name if target.endswith("/") else place)

    def _run(self, one: Instruction) -> None:
        handed_on = {name: os.environ[name] for name in HANDED_ON if name in os.environ}
        done = self.run(["sh", "-c", one.rest], DEBIAN_FRONTEND="noninteractive", **handed_on)
        assert done.returncode == 0, f"{one.rest}\n{done.stdout}\n{done.stderr}"

    def _inside(self, path: str) -> Path:
        return self.folder / path.lstrip("/")

    def _ignored(self, folder: str, names: list[str]) -> set[str]:
        """What `Dockerfile.dockerignore` keeps out; of the context only."""
        if not Path(folder).is_relative_to(self.context):
            return set()
        patterns = (self.context / "packaging/Dockerfile.dockerignore").read_text().splitlines()
        patterns = [line for line in patterns if line and not line.startswith("#")]
        here = Path(folder).relative_to(self.context)
        return {name for name in names if any(_fits(str(here / name), pattern) for pattern in patterns)}


def _fits(path: str, pattern: str) -> bool:
    if pattern.startswith("**/"):
        return fnmatch.fnmatch(path.rpartition("/")[2], pattern.removeprefix("**/"))
    return fnmatch.fnmatch(path, pattern)
