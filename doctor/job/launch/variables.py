"""The variables that matter to a job. No others are read, kept or printed."""

from collections.abc import Mapping

from doctor.devices import EVERY_VISIBLE, every
from doctor.job.launch import launchers
from doctor.text.late import late
from doctor.text.redact import redact_values

GIVEN = "|".join(("SLURM_(JOB_GPUS|GPUS(_[A-Z_]+)?)", *every("given")))
"""What a scheduler or a runtime says about the devices of a host."""

_PLACE = (
    f"{launchers.KEPT}|RANK_[A-Z0-9_]+|MINDSPORE_[A-Z0-9_]+|DEVICE_ID|DEVICE_NUM|ASCEND_DEVICE_ID"
    "|CM_(CHIEF_IP|CHIEF_PORT|CHIEF_DEVICE|WORKER_SIZE|WORKER_IP)"
    f"|{GIVEN}"
)
"""Who a rank is, and where the others are. Other kinds of variables also begin with MS_."""

_SETTINGS = "|".join(
    (
        "(GLOO|TORCH|PYTORCH|UCX|TP)_[A-Z0-9_]+|OMP_NUM_THREADS",
        "LD_LIBRARY_PATH|LD_PRELOAD|PYTHON(PATH|HOME|HASHSEED|UTF8|MALLOC)|TZ",
        *every("variables"),
        *EVERY_VISIBLE,
    )
)
"""Settings of the libraries of a job."""

JOB_VARIABLES = f"{_PLACE}|{_SETTINGS}"
"""Their names, as an extended regular expression that grep, awk and Python read alike."""

SECRET = "(KEY|TOKEN|SECRET|PASS|PWD|WEBHOOK|CRED)"
"""No variable with one of these words in its name is ever read."""

LONGEST = 4000
"""The most characters of a value. Ranks are given what is kept, and half a path would be a wrong path."""

PER_PROCESS = late(f"{launchers.PER_RANK}|DEVICE_ID|ASCEND_DEVICE_ID")
"""Variables that are meant to differ from rank to rank, so they never hold for a whole launch."""

HOW_MANY_HERE = "LOCAL_WORLD_SIZE|(PET_)?NPROC_PER_NODE|DEVICE_NUM|\\w+_COMM_WORLD_LOCAL_SIZE"
"""Variables with the number of ranks on this host; other hosts may have more."""

PER_HOST = late(
    r"HCCL_IF_IP|HCCL_LOGIC_SUPERPOD_ID|HCCL_WHITELIST_FILE|\w+_SOCKET_IFNAME|CM_WORKER_IP|MS_WORKER_IP"
    r"|NCCL_(?:IB_HCA|IB_GID_INDEX|HOSTID|TOPO_FILE|GRAPH_FILE|CONF_FILE|OOB_NET_IFNAME)"
    r"|NCCL_(?:HOME|VERSION|INSTALL_PATH)|NCCL_(?:ROOT|LIB|INCLUDE)\w*"
)
"""Variables that may differ between hosts, because names of devices and paths of libraries differ."""

ONLY_WORDS = late(
    r"NCCL_(?:DEBUG|TOPO_DUMP|GRAPH_DUMP|PROFILE|RAS|SET_THREAD_NAME)\w*"
    r"|HCCL_(?:ENTRY_LOG_ENABLE|DIAGNOSE_ENABLE|DEBUG_CONFIG)"
)
"""Variables that affect only what is logged."""

ONLY_PRESENCE = late(r"RANK_TABLE_FILE|MINDSPORE_HCCL_CONFIG_PATH|HCCL_(?:NPU|HOST)_SOCKET_PORT_RANGE")
"""Variables that are set for every rank or for none; their values may differ."""

_EVERYWHERE = late(rf"{launchers.MUST_AGREE}|CM_CHIEF_\w+|CM_WORKER_SIZE|(?:HCCL|NCCL)_\w+")
_MATTERS = late(JOB_VARIABLES)
_SECRET = late(SECRET)
_PLACES = late(_PLACE)


def is_kept(name: str) -> bool:
    return _MATTERS.fullmatch(name) is not None and _SECRET.search(name) is None


def is_setting(name: str) -> bool:
    """Whether ranks of any job on these hosts may be given this variable."""
    return is_kept(name) and _PLACES.fullmatch(name) is None


def must_agree(name: str) -> bool:
    """Whether every rank of a job must be given the same value."""
    if ONLY_PRESENCE.fullmatch(name):
        return True
    excused = PER_HOST.fullmatch(name) or ONLY_WORDS.fullmatch(name)
    return excused is None and _EVERYWHERE.fullmatch(name) is not None


def kept(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables that matter to a job, without secrets and without values that are too long."""
    mine = {name: text for name, text in variables.items() if is_kept(name) and len(text) <= LONGEST}
    return redact_values(mine)
