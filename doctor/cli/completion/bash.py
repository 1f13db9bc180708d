"""The script for bash, 4.4 or later."""

from collections.abc import Iterator, Sequence
from shlex import quote

from doctor.cli.completion.entries import CompletionCommand, Values
from doctor.text.hostprogram import host_program

HEAD = host_program(__file__, "bash_head.bash")
TAIL = "    esac\n}\ncomplete -F _doctor doctor\n"
MANY = 40
"""With more words than this, only files are offered until something is typed."""
KINDS = {"files": " -f", "folders": " -d", "hosts": " -A hostname", "": ""}


def script(commands: Sequence[CompletionCommand]) -> Iterator[str]:
    yield HEAD.replace("@PATHS@", " | ".join(quote(each.path) for each in commands[1:]))
    taken = {"|".join(each.names): each.values for one in commands for each in one.options if each.values}
    for names, values in taken.items():
        yield f"        {names}) {_offer(values)}; return ;;\n"
    yield "    esac\n    case $at in\n"
    for each in commands:
        dashed = Values(tuple(name for option in each.options for name in option.names))
        others = Values(tuple(name for name, _ in each.commands)) if each.commands else each.arguments
        yield f"        {quote(each.path)}) if [[ $word == -* ]]; then {_offer(dashed)}\n"
        yield f"            else {_offer(others)}; fi ;;\n"
    yield TAIL


def _offer(values: Values) -> str:
    words = f" -W {quote(' '.join(values.words))}" if values.words else ""
    if not (words or values.kind):
        return ":"
    if values.kind == "files" and len(values.words) > MANY:
        words = f"${{word:+{words}}}"
    how = "list" if values.commas else "files" if values.kind in ("files", "folders") else "offer"
    return f"_doctor_{how}{KINDS[values.kind]}{words}"
