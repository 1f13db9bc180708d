"""The messages of torch_npu's errors."""

from __future__ import annotations

import os
import time


def _signed(device: int, rank: int, code: str, module: str, words: str) -> str:
    when = time.strftime("%Y-%m-%d-%H:%M:%S")
    return f"[ERROR] {when} (PID:{os.getpid()}, Device:{device}, RankID:{rank}) {code} {module} {words}"


def hccl(device: int, rank: int, number: int, detail: str) -> RuntimeError:
    """The error of forming a communicator."""
    return RuntimeError(
        "create_config:build/CMakeFiles/torch_npu.dir/compiler_depend.ts:102 HCCL function error: "
        "hcclCommInitRootInfoConfig(numRanks, &rootInfo, rank, config, &(comm->hcclComm_)), "
        f"error code is {number}\n"
        + _signed(device, rank, "ERR02200", "DIST", "call hccl api failed.")
        + f"\n{detail}"
    )


def coded(code: str, words: str) -> str:
    """One of CANN's own errors."""
    return f"{code}: [PID: {os.getpid()}] {time.strftime('%Y-%m-%d-%H:%M:%S')}.000.000 {words}"


def queue(task: str, device: int, rank: int) -> RuntimeError:
    """The error of every call after a task of the queue has failed (RepoStatus::ERROR_EXIT)."""
    return RuntimeError(
        "The Inner error is reported as above. The process exits for this inner error, and "
        f"the current working operator name is {task}.\n"
        "Since the operator is called asynchronously, the stacktrace may be inaccurate. If you want to get "
        "the accurate stacktrace, pleace set the environment variable ASCEND_LAUNCH_BLOCKING=1.\n"
        "Note: ASCEND_LAUNCH_BLOCKING=1 will force ops to run in synchronous mode, resulting in performance "
        "degradation. Please unset ASCEND_LAUNCH_BLOCKING in time after debugging.\n"
        + _signed(device, rank, "ERR00100", "PTA", "call acl api failed")
    )


def operator(name: str, device: int, rank: int, dtype: str, supported: str) -> RuntimeError:
    """The error of an operator that lacks this data type."""
    detail = coded(
        "EZ1001", f"self not implemented for {dtype}, should be in dtype support list [{supported}]."
    )
    return RuntimeError(
        f"call {name} failed, detail:{detail}\n\n"
        + _signed(device, rank, "ERR01005", "OPS", "internal error")
    )


def other_device(device: int, rank: int) -> RuntimeError:
    return RuntimeError(
        "Expected all tensors to be on the same device. Expected NPU tensor, please check whether the input "
        "tensor device is correct.\n" + _signed(device, rank, "ERR01002", "OPS", "invalid type")
    )
