"""Files that a script gives to its launcher or its ranks: whether they are the same when these start."""

import re
from functools import lru_cache

from doctor.job.launch.command import only_looks, read_command
from doctor.job.launch.launchers.deepspeed import CONFIGS

_TAKES = rf"--?(?:hostfile|machine-?file|f|H|config[_-]file|{'|'.join(CONFIGS)})(?:=|\s+)[^\s;|&]{{0,300}}"
"""What stands before the name of a file that is only read."""
_SETS = r"(?:export\s+)?(\w+)\+?=(?:\"[^\"`(]*\"|'[^']*'|\([^()`]*\)?|[^\s\"'`()]*)\s*$"
_BEGINS = r"(?:\s|\b(?:if|then|else|do|time)\s|[!{(])*"
_WRITES = r">(?!\s*&|\s*/dev/null)|`|\$\((?!dirname|basename|realpath|cd|pwd|hostname|date|which|seq|\()"
_KNOWN = re.compile(
    rf"(?!.*(?:{_WRITES}))(?:[^\w$]*$|-|\[|{_SETS}|for\s+\w+\s+in\s|(?:cd|conda\sactivate|date|done|echo|exit|export|fi|mkdir"
    r"|hostname|module|pwd|set|sleep|source\s\S*(?:activate|set_env\.sh)|ulimit|unset|wait)\b)"
)
"""Commands that write no file."""


@lru_cache(16)
def changes_no_files(text: str) -> bool:
    """Whether a script runs only commands that write no files, besides the one program that it launches."""
    programs = {_launched(command) for command in commands_of(text) if not _KNOWN.match(command)}
    return len(programs) == 1 and "" not in programs


@lru_cache(16)
def commands_of(text: str) -> list[str]:
    """The commands of a script, each on one line."""
    code = re.sub(r"(?m)(?:^|[ \t])#.*", "", text.replace("\\\n", " "))
    return [re.sub(f"^{_BEGINS}", "", each).rstrip() for each in re.split(r"[;|\n]|(?<!>)&(?!>)", code)]


def _launched(command: str) -> str:
    """The program that a launcher starts there."""
    read = read_command(tuple(re.sub(r"^(?:\w+=\S*\s+)*|[\"']", "", command).split()))
    return read.program if read and read.launcher and not only_looks(read) else ""
