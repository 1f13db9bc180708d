"""Rank tables: read in every form that HCCL and MindSpore know, judged, and written. Pure.

table, flaws = read_table(text)      what the file says; every flaw with line and column
judge(table, "atlas-a2")             what it says is wrong, as far as the file alone can tell
make_table(servers, "1.0")           a table of live devices

Whether the hosts really have these devices is not known here.
"""

from doctor.job.ranktable.judge import judge
from doctor.job.ranktable.make import LiveDevice, LiveServer, make_table
from doctor.job.ranktable.model import (
    Count,
    Entry,
    Flaw,
    Form,
    Port,
    RankTable,
    Server,
    Spot,
    SuperPod,
    board_architecture,
)
from doctor.job.ranktable.read import read_table

__all__ = [
    "Count",
    "Entry",
    "Flaw",
    "Form",
    "LiveDevice",
    "LiveServer",
    "Port",
    "RankTable",
    "Server",
    "Spot",
    "SuperPod",
    "board_architecture",
    "judge",
    "make_table",
    "read_table",
]
