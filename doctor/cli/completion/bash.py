"""The script for bash, 4.4 or later."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote

from doctor.cli.completion.entries import CompletionCommand, Values

HEAD = r"""# Completion of doctor for bash: eval "$(doctor completion bash)"
_doctor_offer() {
    mapfile -t COMPREPLY < <(compgen "$@" -- "$word")
}
_doctor_files() {
    compopt -o filenames 2>/dev/null
    _doctor_offer "$@"
}
_doctor_list() {  # behind the last comma
    local before=
    [[ $word == *,* ]] && before=${word%,*},
    mapfile -t COMPREPLY < <(compgen -P "$before" "$@" -- "${word##*,}")
}
_doctor() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} at= next i
    COMPREPLY=()
    if [[ $word == = ]]; then word=; elif [[ $before == = ]]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        next="${at:+$at }${COMP_WORDS[i]}"
        case $next in @PATHS@) at=$next ;; esac
    done
    case $before in
"""
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
