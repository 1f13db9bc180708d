"""The values that HCCL takes for its variables."""

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
