"""Ranks started by hand with RANK_TABLE_FILE: the table says where they meet."""

from doctor.job.launch.launcher import launcher_of

RANK_TABLE = launcher_of("rank table")
