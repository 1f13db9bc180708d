"""torch_npu_run: torchrun for Ascend; it supports only the static rendezvous."""

from doctor.job.launch.launcher import launcher_of
from doctor.job.launch.launchers.torchrun import options, spans_nodes, static_master

TORCH_NPU_RUN = launcher_of(
    "torch_npu_run", options=options(), master=static_master, goes_by_node_rank=spans_nodes
)
