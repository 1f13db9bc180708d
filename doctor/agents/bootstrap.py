"""How an agent gets to a host: one command line for any login shell, modules on stdin, nothing on disk."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files

from doctor.agents.onhost import bundle
from doctor.transport import Script

PYTHONS = ("python3", "/usr/libexec/platform-python", "python")
LAST_LINE = b'{"say":"bye"}'

# Prints the real interpreter behind shims and wrappers, if it is new enough and has the modules.
_WHICH = (
    "import sys, base64, json, zlib, {needs}; sys.version_info >= (3, 6) and sys.stdout.write(sys.executable)"
)
_BASH = "LC_ALL=C; IFS=; set -f; read -r -N {python} _; read -r -N {bash} s; eval $s"


@cache
def module_texts(package: str) -> Mapping[str, str]:
    """The modules of a package: name -> source text."""
    return {
        f"{package}.{entry.name[:-3]}": entry.read_text(encoding="utf-8")
        for entry in sorted(files(package).iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(".py") and entry.name != "__init__.py"
    }


def agent_script(
    modules: Mapping[str, str], main: str, *, needs: str, python: str | None = None, bash: bytes = b""
) -> Script:
    """The script that starts the module `main`. The session's stdin must stay open afterwards.

    `needs`: the modules that the interpreter must have. `python` is the preferred interpreter, `bash` the
    program for hosts without Python. Stdin carries both programs and then the commands; whichever program
    starts reads exactly the bytes of both.
    """
    program, head = _packed(tuple({**module_texts("doctor.agents.onhost"), **modules}.items()))
    code = bundle.reader(program, head, len(bash))
    candidates = " ".join(shlex.quote(p) for p in ((python,) if python else ()) + PYTHONS)
    # The output of the login shell may lack its last newline.
    shell = (
        f"echo; for p in {candidates}; do "
        f'x=$("$p" -ISBc {_quoted(_WHICH.format(needs=needs))} 2>/dev/null </dev/null) && [ -x "$x" ] '
        f'&& exec "$x" -ISBc {_quoted(code)} {main}; done; '
    )
    missing = "no Python 3.6 or later was found"
    if bash:
        feed = _BASH.format(python=len(program), bash=len(bash))
        shell += f"command -v bash >/dev/null 2>&1 && exec bash --norc --noprofile -c {shlex.quote(feed)}; "
        missing = "neither Python 3.6 or later nor bash was found"
    shell += "echo " + shlex.quote(f'{{"say":"none","detail":"{missing}"}}')
    return Script(f"exec sh -c {shlex.quote(shell)}", program + bash, LAST_LINE)


def by_sudo(script: Script) -> Script:
    """The same script, run as root if `sudo -n` allows it. A sudo that prints anything else is none."""
    plain = script.command.removeprefix("exec ")
    root = '[ "$(sudo -n id -u 2>/dev/null </dev/null | head -c 9)" = 0 ]'
    words = f"{root} && exec sudo -n {plain}; exec {plain}"
    return replace(script, command=f"exec sh -c {shlex.quote(words)}")


@cache
def _packed(modules: tuple[tuple[str, str], ...]) -> tuple[bytes, int]:
    """The packed program, built once for all hosts."""
    return bundle.pack(dict(modules))


def _quoted(code: str) -> str:
    """The code in double quotes: nested single quotes are hard to read, and nothing here needs escaping."""
    assert not set(code) & set("\"'$`\\!\n")
    return f'"{code}"'
