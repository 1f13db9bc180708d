"""The script for fish."""

from collections.abc import Iterator, Sequence
from shlex import quote

from doctor.cli.completion.entries import CompletionCommand, CompletionEntry, Values
from doctor.text.hostprogram import host_program

HEAD = host_program(__file__, "fish_head.fish")
KINDS = {
    "files": " -F",
    "folders": " -a '(__fish_complete_directories)'",
    "hosts": " -a '(__fish_print_hostnames)'",
    "": "",
}


def script(commands: Sequence[CompletionCommand]) -> Iterator[str]:
    yield HEAD.replace("@PATHS@", " ".join(quote(each.path) for each in commands[1:]))
    for each in commands:
        here = f'complete -c doctor -n "__doctor_at {quote(each.path)}"'
        for name, about in each.commands:
            yield f"{here} -a {name} -d {quote(about)}\n"
        if not each.commands and (offered := _offer(each.arguments)):
            yield f"{here}{offered}\n"
        for option in each.options:
            yield f"{here}{_names(option)}{_value_flags(option.values)} -d {quote(option.about)}\n"


def _names(option: CompletionEntry) -> str:
    return "".join(f" -l {name[2:]}" if name.startswith("--") else f" -s {name[1:]}" for name in option.names)


def _value_flags(values: Values | None) -> str:
    if values is None:
        return ""
    return f" -{'r' if values.kind == 'files' else 'x'}{_offer(values)}"


def _offer(values: Values) -> str:
    words = " ".join(values.words)
    if values.commas:
        return f" -a '(__doctor_list {words})'"
    return (f" -a {quote(words)}" if words else "") + KINDS[values.kind]
