"""Rank tables: read in every form that HCCL and MindSpore accept, judged, and written. Pure.

table, flaws = read_table(text)      the contents of the file; every flaw with line and column
judge(table, "atlas-a2")             what is wrong with it, judged from the file alone
make_table(servers, "1.0")           a table of live devices

This package does not know whether the hosts really have these devices.
"""

from doctor.job.ranktable.grouping import PRODUCTS, implied_product
from doctor.job.ranktable.make import LiveDevice, LiveServer, make_table
from doctor.job.ranktable.model import Flaw, RankEntry, RankTable, Server, Spot, board_architecture
from doctor.job.ranktable.read import judge, read_table
