"""Ranks started by hand with RANK_TABLE_FILE: the table says where they meet."""

from doctor.job.launch.launcher import Launcher, RankVariables

RANK_TABLE = Launcher(
    "rank table",
    ranks=(RankVariables(rank="RANK_ID", world=("RANK_SIZE",), by_hand=True),),
    own="RANK_(ID|SIZE)",
)
