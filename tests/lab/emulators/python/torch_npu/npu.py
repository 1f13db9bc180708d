"""`torch.npu`: the device and its name."""

from __future__ import annotations

import torch

from . import npu_utils as utils
from . import products, tensor
from .state import STATE

__all__ = ["utils"]


def is_available() -> bool:
    return device_count() > 0


def device_count() -> int:
    return len(products.devices())


def current_device() -> int:
    return STATE.device


def set_device(device: int | str | torch.device) -> None:
    number = device if isinstance(device, int) else torch.device(device).index or 0
    if not 0 <= number < device_count():
        raise RuntimeError(
            "exchangeDevice:build/CMakeFiles/torch_npu.dir/compiler_depend.ts:37 NPU function error: "
            f"c10_npu::SetDevice(device), error code is 107001\nEE1001: The argument is invalid. Reason: "
            f"set device={number}, valid device range is [0, {device_count()})"
        )
    STATE.device = number


def get_device_name(_device: int | None = None) -> str:
    return products.product().name


def synchronize(_device: object = None) -> None:
    STATE.use_queue()


def manual_seed(seed: int) -> None:
    STATE.random.manual_seed(seed)


manual_seed_all = manual_seed


def _is_in_bad_fork() -> bool:
    return False


tensor.register()
