"""`warren completion`: what a shell needs to complete `warren`'s commands, options and live names with the tab key."""

from __future__ import annotations

from typing import Annotated

import typer

from warrenmq.cli import _output
from warrenmq.cli._command import Json, stop

SCRIPTS = {
    "bash": """\
_warren() {
    local IFS=$'\\n'
    COMPREPLY=($(warren __complete bash "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _warren warren
""",
    "zsh": """\
#compdef warren
_warren() {
    local -a found
    found=("${(@f)$(warren __complete zsh "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    [[ -n "${found[1]}" ]] && compadd -a found
}
compdef _warren warren
""",
    "fish": """\
complete -c warren -f -a '(warren __complete fish (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
""",
}
HOW = {
    "bash": "warren completion bash > ~/.local/share/bash-completion/completions/warren",
    "zsh": 'eval "$(warren completion zsh)" in ~/.zshrc, behind compinit',
    "fish": "warren completion fish > ~/.config/fish/completions/warren.fish",
}


def register(app: typer.Typer) -> None:
    app.command("completion")(completion)


def completion(
    shell: Annotated[str, typer.Argument(help=f"{', '.join(SCRIPTS)}.")],
    as_json: Json = False,
) -> None:
    """Print what a shell needs to complete commands, options and names of queues, exchanges and vhosts."""
    if shell not in SCRIPTS:
        stop("completion", f"no shell '{shell}' ({', '.join(SCRIPTS)})")
    _output.said(SCRIPTS[shell] + f"# {HOW[shell]}", {"shell": shell, "script": SCRIPTS[shell]}, as_json)
