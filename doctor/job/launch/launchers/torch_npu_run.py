"""torch_npu_run: torchrun for Ascend; it supports only the static rendezvous."""

from doctor.job.launch.launcher import Launcher
from doctor.job.launch.launchers.torchrun import MADE_FOR_RANKS, ON_HOSTS, options, spans_nodes, static_master

TORCH_NPU_RUN = Launcher(
    "torch_npu_run",
    commands=("torch_npu_run",),
    modules=("torch_npu.distributed.run",),
    options=options(),
    master=static_master,
    goes_by_node_rank=spans_nodes,
    first_node="0",
    ignores=MADE_FOR_RANKS,
    on_hosts=ON_HOSTS,
    ends_job="always",
    framework="torch",
)
