"""The script of grep and awk that finds the processes of jobs on a host.

Only what matters to a job leaves the host: no other variables, and nothing of a command line after the
program. What started doctor, and what doctor started, are not listed. A process in another network namespace,
such as a container's, is marked: its addresses and ports are not those of the host.
"""

from __future__ import annotations

import shlex

from doctor.job.launch.command import PROGRAMS
from doctor.job.launch.launcher import NOT_SHOWN, Launcher
from doctor.job.launch.launchers import COMMANDS, LOCAL_RANKS, MASTERS, MODULES, NUMBERS, PER_HELPER, ROLES
from doctor.job.launch.table_reference import VARIABLES as TABLES
from doctor.job.launch.variables import JOB_VARIABLES, SECRET
from doctor.job.launch.wrappers import PREFIXES
from doctor.text.hostprogram import host_program

MOST = 300
"""The most processes of one host. Helpers that a rank started do not count."""
CANDIDATES = 4000
_SIGNS = "|".join(
    (
        f"^({'|'.join(dict.fromkeys([*NUMBERS, *LOCAL_RANKS, *ROLES, *MASTERS]))}|{'|'.join(TABLES)})=",
        f"^(.*/)?({'|'.join(COMMANDS)})$",
        f"^(-[A-Za-z]*m)?({'|'.join(MODULES)})$".replace(".", r"\."),
    )
)


def _options(launcher: Launcher) -> str:
    """Its options: =v has a value, =u one that is dropped, =p two, =f none."""
    known = launcher.options
    marks = {name: "u" if called in NOT_SHOWN else "v" for name, called in known.values.items()}
    marks |= dict.fromkeys(known.pairs, "p") | dict.fromkeys(known.flags - known.values.keys(), "f")
    how = ("a" if known.abbreviated else "") + ("g" if known.glued else "") + ("o" if launcher.outer else "")
    return " ".join([f"@{launcher.name}={how}", *(f"{name}={mark}" for name, mark in sorted(marks.items()))])


# The script sends the part of a command line that doctor.job.launch.command.kept_words would keep.
_AWK = host_program(__file__, "onhost.awk")


def awk_words() -> tuple[str, ...]:
    """The arguments of awk, except for the session in which the probe itself runs."""
    given = {
        "most": str(MOST),
        "numbers": " ".join(PER_HELPER),
        "told": " ".join(TABLES),
        "wrapper": f"^({PROGRAMS['above']})$",
        "names": JOB_VARIABLES,
        "secret": SECRET,
        "wrapped": "|".join(sorted(PREFIXES)),
        "commands": " ".join(f"{name}={known.name}={known.subcommand}" for name, known in COMMANDS.items()),
        "modules": " ".join(f"{name}={known.name}" for name, known in MODULES.items()),
        "options": " ".join(map(_options, dict.fromkeys(COMMANDS.values()))),
    }
    return (*(word for name, text in given.items() for word in ("-v", f"{name}={text}")), _AWK)


# A library of LD_PRELOAD that is gone makes the linker complain in the place of grep.
LOOK = host_program(
    __file__,
    "onhost_look.sh",
    signs=_SIGNS,
    candidates=CANDIDATES,
    tables="|".join(TABLES),
    variables=JOB_VARIABLES,
    words=shlex.join(awk_words()),
)
