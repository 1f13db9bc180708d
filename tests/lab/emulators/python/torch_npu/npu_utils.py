"""`torch.npu.utils`: versions."""

from __future__ import annotations

from . import products


def get_cann_version(module: str = "CANN") -> str:
    return products.cann() if module in ("CANN", "HCCL", "RUNTIME", "DRIVER") else ""
