"""The script for zsh: for `eval`, or as the file _doctor in a folder of fpath."""

from collections.abc import Iterator, Sequence
from shlex import quote

from doctor.cli.completion.entries import CompletionCommand, CompletionEntry, Values
from doctor.text.hostprogram import host_program

HEAD = host_program(__file__, "zsh_head.zsh")
TAIL = """    esac
}
if [[ $funcstack[1] == _doctor ]]; then _doctor "$@"; else compdef _doctor doctor; fi
"""
KINDS = {"files": "_files", "folders": "_files -/", "hosts": "_hosts", "": " "}


def script(commands: Sequence[CompletionCommand]) -> Iterator[str]:
    yield HEAD.replace("@PATHS@", "|".join(quote(each.path) for each in commands[1:]))
    for each in commands:
        specs = [spec for option in each.options for spec in _specs(option)]
        if each.commands:
            named = " ".join(quote(f"{name}:{about}") for name, about in each.commands)
            yield f"        ({quote(each.path)}) if [[ $words[CURRENT] == -* ]]; then\n"
            yield f"                _arguments {' '.join(specs)}\n"
            yield f"            else commands=({named}); _describe command commands; fi ;;\n"
        else:
            specs.append(quote(f"*: :{_action(each.arguments)}"))
            yield f"        ({quote(each.path)}) _arguments {' '.join(specs)} ;;\n"
    yield TAIL


def _specs(option: CompletionEntry) -> Iterator[str]:
    for name in option.names:
        if option.values is None:
            yield quote(f"*{name}[{option.about}]")
        else:
            sign = "=" if name.startswith("--") else "+"
            yield quote(f"*{name}{sign}[{option.about}]:value:{_action(option.values)}")


def _action(values: Values) -> str:
    words = " ".join(values.words)
    if values.commas:
        return f"_values -s , value {words}"
    if words and values.kind:
        return f"{{compadd -- {words}; {KINDS[values.kind]}}}"
    return f"({words})" if words else KINDS[values.kind]
