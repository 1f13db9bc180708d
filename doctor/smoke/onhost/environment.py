"""The variables of the ranks' interpreter; those that choose interfaces are the login's and the launch's."""

import os
from collections.abc import Mapping

NEEDED = {
    "torch": {
        # A device's library starts threads and must not be loaded before the ranks are forked:
        # https://docs.pytorch.org/tutorials/unstable/python_extension_autoload.html
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"
    },
    "mindspore": {
        # Without it each operation on the CPU costs ten times as much, errors appear in later calls, and the
        # stack of a rank that hangs does not show the collective.
        "MS_DEV_LAUNCH_BLOCKING": "1"
    },
}
WISHED = {
    # The last words of a rank should be its own, not remarks on names and on coming changes.
    "torch": {"TORCH_CPP_LOG_LEVEL": "ERROR"},
    "mindspore": {"GLOG_v": "3"},
}
OF_ANOTHER_JOB = (
    "MS_ROLE",
    "MS_SCHED_HOST",
    "MS_SCHED_PORT",
    "MS_WORKER_NUM",
    "MS_NODE_ID",
    "RANK_TABLE_FILE",
)
"""The ranks of a MindSpore job that have these would join the user's own cluster."""


def environment(given: "Mapping[str, str]", framework: str = "torch") -> "dict[str, str]":
    """The login's variables, the requested ones, and what a quiet run needs."""
    chosen = dict(os.environ)
    chosen.update(given)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        chosen[name] = "1"
    chosen["PYTHONDONTWRITEBYTECODE"] = chosen["PYTHONUNBUFFERED"] = "1"
    chosen.update(NEEDED.get(framework, {}))
    for name, value in WISHED.get(framework, {}).items():
        chosen.setdefault(name, value)
    chosen.setdefault("PYTHONWARNINGS", "ignore")
    if framework == "mindspore":
        for name in OF_ANOTHER_JOB:
            chosen.pop(name, None)
    return chosen
