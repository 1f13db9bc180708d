"""What the processes of a job were given at their start, and what it means. Pure: no host is reached.

read_launch_files(paths)          --launch: dumps of environments, env files, launch scripts; nothing is run
launch_of_processes(by_host)      processes that run now, grouped into jobs
common_env(launch)                the variables on which all its processes agree
told_tables(launch.told)          the rank tables that its processes were given

A `ProcessEnv` is one process. `rank_env` reads its place (rank, master, hosts) from its variables,
`Directory` finds the owner of an address, and `ranks` finds ranks that are missing, duplicate or impossible.
"""

from doctor.job.launch.common import common_env
from doctor.job.launch.directory import Directory, as_address
from doctor.job.launch.files import read_launch_files
from doctor.job.launch.process_env import Launch, ProcessEnv, TableSeat
from doctor.job.launch.processes import JobProcess, launch_of_processes
from doctor.job.launch.table_reference import VARIABLES as TABLE_VARIABLES
from doctor.job.launch.table_reference import TableReference, is_by_device, told_tables

__all__ = [
    "TABLE_VARIABLES",
    "Directory",
    "JobProcess",
    "Launch",
    "ProcessEnv",
    "TableReference",
    "TableSeat",
    "as_address",
    "common_env",
    "is_by_device",
    "launch_of_processes",
    "read_launch_files",
    "told_tables",
]
