"""`doctor help --man`: the manual page doctor(1), made from the entries of --help."""

import re
from collections.abc import Iterator
from typing import Any

from doctor.cli.help import OTHERS, below, entries
from doctor.text.hostprogram import sections


def manual(root: Any, version: str) -> str:
    """The page in roff, for man(1); `root` is the context of doctor itself."""
    return "".join(f"{line}\n" for line in _lines(root, version))


def _lines(root: Any, version: str) -> Iterator[str]:
    yield f'.TH DOCTOR 1 "" "cluster\\-doctor {_text(version)}" "User Commands"'
    yield from (".SH NAME", r"doctor \- examine a training cluster", ".SH SYNOPSIS")
    yield from (r".B doctor", r".I COMMAND", r"[\fIOPTIONS\fR] [\fIHOSTS\fR...]")
    yield from (".SH DESCRIPTION", _text(root.command.help))
    yield from _examples(root.command)
    for context in below(root):
        yield f'.SH "{_text(context.command_path.upper())}"'
        yield _text(context.command.help or context.command.get_short_help_str(200))
        yield from _options(context)
        yield from _examples(context.command)
    yield ".SH OPTIONS"
    yield from _options(root)
    for title, rows in sections(__file__, "manpage.txt").items():
        yield f'.SH "{title}"'
        for name, what in rows.items():
            yield from (".TP", rf"\fB{_text(name)}\fR", _text(what))
    yield from (".SH SEE ALSO", _text("doctor list for all checks; doctor explain ID for the page of one."))


def _options(context: Any) -> Iterator[str]:
    panel = OTHERS
    for each in entries(context.command, context):
        if each.names[-1] == "--help" and context.parent:
            continue
        if each.panel != panel:
            yield f'.SS "{_text(each.panel)}"'
        panel = each.panel
        names = ", ".join(rf"\fB{_text(name)}\fR" for name in each.names)
        value = rf" \fI{_text(each.metavar)}\fR" if each.is_option and each.metavar else ""
        yield from (".TP", names + value, _text(each.help) or r"\&")


def _examples(command: Any) -> Iterator[str]:
    for line in (command.epilog or "").splitlines():
        typed, _, what = re.sub(r" {2,}", "\0", line).partition("\0")
        yield from (
            ".PP",
            _text(f"{what[:1].upper()}{what[1:]}"),
            ".PP",
            ".nf",
            rf"\fB    {_text(typed)}\fR",
            ".fi",
        )


_SIGNS = str.maketrans(
    {"\\": r"\e", "-": r"\-", "'": r"\(aq", '"': r"\(dq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti"}
)


def _text(text: str) -> str:
    """The text with every roff request and escape made harmless."""
    text = " ".join(text.split()).translate(_SIGNS)
    return rf"\&{text}" if text.startswith(".") else text
