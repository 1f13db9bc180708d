"""The rank table of a launch: the only place where RANK_TABLE_FILE becomes a path."""

import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from doctor.job.launch.process_env import ProcessEnv
from doctor.job.launch.rank_env import DEVICE, launcher, rank_of, role_of, role_variable

VARIABLES = ("RANK_TABLE_FILE", "MINDSPORE_HCCL_CONFIG_PATH")
OPTION = "rank_table_file"
MOST_TABLES = 64
"""The most tables of one launch, if each rank is given another; a host is not asked for more files."""


@dataclass(frozen=True, slots=True)
class TableReference:
    """A rank table as a launch names it: `said` is the variable or option, `text` its value.

    `path` is absolute, or empty if unknown: then `why` says what is missing. `beside`: the table is beside
    the script, which may have another place on the hosts.
    """

    said: str
    text: str
    path: str
    why: str = ""
    beside: bool = False


def told_tables(processes: Iterable[ProcessEnv]) -> tuple[TableReference, ...]:
    """The tables that these processes are given, each once."""
    return tuple(dict.fromkeys(table for each in processes for table in _of_process(each)))[:MOST_TABLES]


def is_by_device(process: ProcessEnv) -> bool:
    """Whether it was given a rank table and its device but no rank: the table says its rank."""
    if DEVICE not in process.env or not process.env.keys() & set(VARIABLES) or process.loop:
        return False
    numbered = replace(process, seat=None)
    return role_of(process) == "rank" and role_variable(process) is None and rank_of(numbered) is None


def _of_process(process: ProcessEnv) -> Iterator[TableReference]:
    agent = launcher(process)
    option = agent.given(OPTION) if agent else None
    if agent and option:
        yield _table_at(agent.spelled(OPTION), option, process)
        return
    for name in VARIABLES:
        if text := process.env.get(name):
            yield _table_at(name, text, process)


def _table_at(said: str, text: str, process: ProcessEnv) -> TableReference:
    """The table in a process's variable or option; a relative path starts from the folder of the process."""
    if re.search(r"[$`]", text):
        return TableReference(said, text, "", "depends on a value that is not known here")
    if not text.startswith("/") and process.folder is None:
        return TableReference(said, text, "", "depends on the directory in which the job is started")
    path = text if text.startswith("/") else posixpath.normpath(posixpath.join(process.folder or "", text))
    return TableReference(said, text, path, beside=bool(process.home and path.startswith(f"{process.home}/")))
