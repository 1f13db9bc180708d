"""What HCCL is told by variables, whichever framework calls it."""

from __future__ import annotations

import math
import os


def hccl_environment(timeout: float) -> dict[str, str]:
    connect, execute, _ = hccl_limits(timeout)
    return {
        "HCCL_CONNECT_TIMEOUT": str(connect),
        "HCCL_EXEC_TIMEOUT": str(execute),
        "HCCL_EVENT_TIMEOUT": str(execute + 32),  # must exceed the limit for executing
        "HCCL_DETERMINISTIC": "true",
        # Guides to torch_npu set it: without it, older HCCL admits only processes on a list.
        "HCCL_WHITELIST_DISABLE": os.environ.get("HCCL_WHITELIST_DISABLE", "1"),
        # A rank table describes the whole job, a cell is a part of it. Empty: HCCL negotiates.
        "RANK_TABLE_FILE": "",
        # CANN's errors go to our own output instead of files; by the older and the newer name.
        "ASCEND_SLOG_PRINT_TO_STDOUT": "1",
        "ASCEND_LOG_PRINT_TO_STDOUT": "1",
        "ASCEND_GLOBAL_LOG_LEVEL": "3",
        "ASCEND_GLOBAL_EVENT_ENABLE": "0",
    }


def hccl_limits(timeout: float) -> tuple[int, int, int]:
    """Seconds for connecting, for executing and for the group, each longer than the one before: otherwise the
    first error would be the wrong one. Connecting may be 120 to 7200 and takes up to 20 more. The first
    generation rounds executing down to a multiple of 68.
    """
    connect = min(max(math.ceil(timeout), 120), 7200)
    execute = ((connect + 20) // 68 + 1) * 68
    return connect, execute, execute + 60
