"""The variables that matter to a job. No others are read, kept or printed."""

from __future__ import annotations

import re
from collections.abc import Mapping

from doctor.devices import EVERY_VISIBLE, every
from doctor.text.redact import redact_values

_PLACE = (
    "RANK|LOCAL_RANK|WORLD_SIZE|LOCAL_WORLD_SIZE|GROUP_RANK|GROUP_WORLD_SIZE|NODE_RANK|NNODES"
    "|NPROC_PER_NODE|MASTER_ADDR|MASTER_PORT|TORCHELASTIC_(RUN_ID|RESTART_COUNT)"
    "|PET_(NNODES|NPROC_PER_NODE|NODE_RANK|MASTER_ADDR|MASTER_PORT|RDZV_BACKEND|RDZV_ENDPOINT|RDZV_ID)"
    "|RANK_[A-Z0-9_]+|MINDSPORE_[A-Z0-9_]+|DEVICE_ID|DEVICE_NUM|ASCEND_DEVICE_ID"
    "|CM_(CHIEF_IP|CHIEF_PORT|CHIEF_DEVICE|WORKER_SIZE|WORKER_IP)"
    "|MS_(ROLE|SCHED_HOST|SCHED_PORT|WORKER_NUM|SERVER_NUM|NODE_ID|WORKER_IP|TOPO_TIMEOUT|NODE_TIMEOUT)"
    "|MS_(RECEIVE_MSG_TIMEOUT|RETRY_INTERVAL_(LOWER|UPPER)|DISABLE_HEARTBEAT|ENABLE_(RECOVERY|LCCL))"
    "|(OMPI|MV2)_COMM_WORLD_(RANK|SIZE|LOCAL_RANK|LOCAL_SIZE)|PMI_(RANK|SIZE)"
    "|SLURM_(JOB_ID|STEP_ID|STEP_NUM_TASKS|PROCID|LOCALID|NODEID|NNODES)"
)
"""Who a rank is, and where the others are. Others begin with MS_, too."""

_SETTINGS = "|".join(
    (
        "(GLOO|TORCH|PYTORCH|UCX|TP)_[A-Z0-9_]+|OMP_NUM_THREADS",
        "LD_LIBRARY_PATH|PYTHONPATH|PYTHONHASHSEED",
        *every("variables"),
        *EVERY_VISIBLE,
    )
)
"""What the libraries of a job go by."""

JOB_VARIABLES = f"{_PLACE}|{_SETTINGS}"
"""Their names, as an extended regular expression that grep, awk and Python read alike."""

SECRET = "(KEY|TOKEN|SECRET|PASS|PWD|WEBHOOK|CRED)"
"""No variable with this in its name is read, whatever else it is called."""

LONGEST = 4000
"""Characters of a value. Ranks are given what is kept: half a path would be a wrong one."""

RANK_VARIABLES = (
    ("RANK", "WORLD_SIZE"),
    ("RANK_ID", "RANK_SIZE"),
    ("MS_NODE_ID", "MS_WORKER_NUM"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
)
"""What numbers a rank, and what says how many there are; the first that is set counts."""

ONLY_TOGETHER = "SLURM_PROCID"
"""A batch script has this number as well, and is no task of a step."""

PER_PROCESS = re.compile(
    r"RANK|LOCAL_RANK|GROUP_RANK|NODE_RANK|RANK_ID|DEVICE_ID|PET_NODE_RANK|MS_NODE_ID|MS_ROLE|ASCEND_DEVICE_ID"
    r"|\w+_COMM_WORLD_(?:LOCAL_)?RANK|PMI_RANK|SLURM_(?:PROCID|LOCALID|NODEID)"
)
"""Meant to differ from rank to rank: never true of a whole launch."""

HOW_MANY_HERE = "LOCAL_WORLD_SIZE|(PET_)?NPROC_PER_NODE|DEVICE_NUM|\\w+_COMM_WORLD_LOCAL_SIZE"
"""Ranks of this host; other hosts may have more."""

PER_HOST = re.compile(
    r"HCCL_IF_IP|HCCL_LOGIC_SUPERPOD_ID|HCCL_WHITELIST_FILE|\w+_SOCKET_IFNAME|CM_WORKER_IP|MS_WORKER_IP"
    r"|NCCL_(?:IB_HCA|IB_GID_INDEX|HOSTID|TOPO_FILE|GRAPH_FILE|CONF_FILE|OOB_NET_IFNAME)"
    r"|NCCL_(?:HOME|VERSION|INSTALL_PATH)|NCCL_(?:ROOT|LIB|INCLUDE)\w*"
)
"""May differ from host to host: hosts call their devices, and the place of a library, differently."""

ONLY_WORDS = re.compile(
    r"NCCL_(?:DEBUG|TOPO_DUMP|GRAPH_DUMP|PROFILE|RAS|SET_THREAD_NAME)\w*"
    r"|HCCL_(?:ENTRY_LOG_ENABLE|DIAGNOSE_ENABLE|DEBUG_CONFIG)"
)
"""Change what is logged, not what is done."""

ONLY_PRESENCE = frozenset(
    {
        "RANK_TABLE_FILE",
        "MINDSPORE_HCCL_CONFIG_PATH",
        "HCCL_NPU_SOCKET_PORT_RANGE",
        "HCCL_HOST_SOCKET_PORT_RANGE",
    }
)
"""Set for every rank or for none; their values may differ."""

_EVERYWHERE = re.compile(
    r"MASTER_ADDR|MASTER_PORT|WORLD_SIZE|NNODES|MS_SCHED_HOST|MS_SCHED_PORT|MS_WORKER_NUM|MS_SERVER_NUM"
    r"|RANK_SIZE|CM_CHIEF_\w+|CM_WORKER_SIZE|(?:HCCL|NCCL)_\w+"
)
_MATTERS = re.compile(JOB_VARIABLES)
_SECRET = re.compile(SECRET)
_PLACES = re.compile(_PLACE)


def is_kept(name: str) -> bool:
    return _MATTERS.fullmatch(name) is not None and _SECRET.search(name) is None


def is_setting(name: str) -> bool:
    """Whether ranks of any job on these hosts may be given it."""
    return is_kept(name) and _PLACES.fullmatch(name) is None


def must_agree(name: str) -> bool:
    """Whether every rank of a job has to be told the same."""
    if name in ONLY_PRESENCE:
        return True
    excused = PER_HOST.fullmatch(name) or ONLY_WORDS.fullmatch(name)
    return excused is None and _EVERYWHERE.fullmatch(name) is not None


def kept(variables: Mapping[str, str]) -> dict[str, str]:
    """Those that matter to a job, without secrets, and without what is too long to be one."""
    mine = {name: text for name, text in variables.items() if is_kept(name) and len(text) <= LONGEST}
    return redact_values(mine)
