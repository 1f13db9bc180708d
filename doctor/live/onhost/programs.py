"""What kind of program a command line starts: a shell, a tool, a notebook, doctor itself. Pure."""

import re
from collections.abc import Sequence
from posixpath import basename


def _names(text: str) -> "frozenset[str]":
    return frozenset(text.split())


SHELLS = _names("sh bash dash ash zsh ksh tcsh csh fish busybox")
WRAPPERS = _names(
    "env time timeout nice ionice chrt taskset numactl setsid stdbuf unbuffer script sudo su runuser gosu"
    " tini dumb-init catchsegv strace ltrace nsys ncu perf tee tail cat ts logger singularity apptainer"
    " enroot conda mamba uv poetry"
)
TOOLS = _names(
    "sleep tail less more man vi vim nvim nano emacs top htop watch tmux screen ssh scp rsync git ls cat grep"
    " find tar gzip nvidia-smi npu-smi journalctl dmesg make ninja curl wget ps gdb"
)
"""Programs that are never ranks, whatever their variables say."""
_NOTEBOOK = re.compile(
    r"(?:jupyter(?:-\w+)?|ipython3?|ipykernel(?:_launcher|\.kernelapp)?|colab_kernel_launcher)(?:\.py)?\Z",
    re.I,
)


def program(command: "Sequence[str]") -> str:
    return basename(command[0]).lstrip("-") if command else ""


def is_shell(command: "Sequence[str]") -> bool:
    """Whether it is a shell, or a wrapper that only runs another program."""
    scripts = command[1:2] if "python" in program(command) else ()
    return program(command) in SHELLS or bool(WRAPPERS & {program(command), *map(basename, scripts)})


def is_doctor(command: "Sequence[str]") -> bool:
    """Whether it is a process of doctor: a controller or an agent."""
    if any("begin(bytes(b[:" in word for word in command[:8]):
        return True
    names = [basename(word) for word in command[:2]]
    return "doctor" in names or " -m doctor " in " ".join(["", *command[:8], ""])


def is_relay(command: "Sequence[str]") -> bool:
    """Whether it is the relay of `doctor run`: what it starts is the user's job."""
    return any("doctor.run.relay" in word for word in command[:8])


def is_notebook(command: "Sequence[str]") -> bool:
    """Whether it is a notebook's kernel or server, or IPython."""
    words = [basename(word) for word in command[:4]]
    after = words.index("-m") + 1 if "-m" in words else 1
    return any(map(_NOTEBOOK.match, words[:1] + words[after : after + 1]))


def script(command: "Sequence[str]") -> str:
    """The script that Python runs; empty if Python is interactive."""
    return next((word for word in command[1:] if word in ("-c", "-m") or not word.startswith("-")), "")


def runs(command: "Sequence[str]") -> "tuple[str, ...]":
    """The script, module or code that Python runs, without its arguments."""
    word = script(command)
    after = command[list(command).index(word) + 1 :][:1] if word in ("-c", "-m") else ()
    return (basename(word), *after)
