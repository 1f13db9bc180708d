"""composer of MosaicML, whose ranks have RANK, WORLD_SIZE and MASTER_ADDR."""

from doctor.job.launch.launcher import launcher_of, master_given, options_of
from doctor.job.launch.launchers.torchrun import spans_nodes

COMPOSER = launcher_of(
    "composer",
    options=options_of("composer", abbreviated=True, shared=("ranks", "master_addr", "master_port")),
    master=master_given,
    goes_by_node_rank=spans_nodes,
)
