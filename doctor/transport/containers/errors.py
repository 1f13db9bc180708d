"""Why a command did not enter a container, as a sentence with a next step."""

import re
import shlex
from dataclasses import replace

from doctor.model import Host, UnreachedHost, UnreachedKind
from doctor.text.redact import redact
from doctor.transport.containers.command import entered, tool_of
from doctor.transport.containers.refusals import refusal_in
from doctor.transport.errors import quoted

LONGEST = 160
"""How many characters of an engine's message a sentence quotes."""


def not_entered(why: UnreachedHost, host: Host, said: str) -> UnreachedHost:
    """The host was reached, but the command that enters failed. `said` is everything that it printed."""
    entry = redact(entered(host))
    here = host.enter_from == "controller" or "localhost" in (host.name, host.address)
    text = redact(said[:4000])
    refusal, caught = refusal_in(text)
    tool = tool_of(entered(host))
    if refusal is None:
        what = _missing(text, tool) or _unknown(text, why)
        remedy = "Run the same by hand. It needs -i and no -t."
        look = ""
    else:
        what = refusal.meaning(caught)
        remedy = refusal.remedy
        typed = refusal.look.replace("{}", caught) if caught or "{}" not in refusal.look else "ps -a"
        words = shlex.split(entry)
        engine = shlex.join(words[: words.index("exec")] if "exec" in words else words[:1])
        look = f"{engine} {typed}" if typed else ""
    where = "" if here else f"ssh {shlex.quote(host.name)} "
    commands = [line if here else where + shlex.quote(line) for line in (f"{entry} true", look) if line]
    if refusal is not None:
        commands.reverse()
    return replace(
        why,
        kind=UnreachedKind.ENTRY,
        summary=f"{entry!r} did not enter: {what}",
        remedy=remedy,
        commands=tuple(commands),
        detail=_line(text) or why.detail,
    )


def _missing(text: str, tool: str) -> str:
    absent = re.search(rf"(?:^|[\s:/]){re.escape(tool)}: (?:command )?not found", text, re.MULTILINE)
    return f"{tool} is not installed there" if absent else ""


def _unknown(text: str, why: UnreachedHost) -> str:
    line = _line(text)
    if line:
        return line
    return "nothing answered in time" if why.kind is UnreachedKind.SILENT else "it said nothing"


def _line(text: str) -> str:
    """The last line, which says why the command ended; earlier ones are often notes."""
    lines = [line for line in text.splitlines() if line.strip()]
    return quoted(lines[-1], LONGEST) if lines else ""
