"""The values that HCCL and torch take for their variables."""

from collections.abc import Mapping

RANGES: Mapping[str, tuple[int, int]] = {
    "HCCL_CONNECT_TIMEOUT": (120, 7200),
    "HCCL_EXEC_TIMEOUT": (0, 2_147_483_647),
    "HCCL_IF_BASE_PORT": (1024, 65520),
    "HCCL_BUFFSIZE": (1, 2_147_483_647),
    "HCCL_RDMA_TC": (0, 255),
    "HCCL_RDMA_SL": (0, 7),
    "HCCL_RDMA_TIMEOUT": (5, 24),
    "HCCL_RDMA_RETRY_CNT": (1, 7),
}
"""HCCL refuses other values with EI0001."""

_TRUTH = ("(?i)y|yes|1|t|true|n|no|0|f|false", "0 or 1")
_WHOLE = (r"\s*[+-]?[0-9].*", "a whole number")
OF_TORCH: Mapping[str, tuple[str, str]] = {
    "TORCH_DISTRIBUTED_DEBUG": ("(?i)off|info|detail", "OFF, INFO or DETAIL"),
    "TORCH_GLOO_LAZY_INIT": _TRUTH,
    "TORCH_NCCL_BLOCKING_WAIT": _TRUTH,
    "TORCH_NCCL_ASYNC_ERROR_HANDLING": _WHOLE,
    "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC": _WHOLE,
}
"""Name -> the values that torch takes, as a pattern and in words. It stops at others when ranks meet, and
reads none of another library than theirs.
"""
