"""Torch on a rank's device: a CPU (gloo), CUDA or ROCm (nccl, tried on one NVIDIA GPU), an NPU (hccl)."""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch

from doctor.smoke.onhost import evidence
from doctor.smoke.onhost.hccl import hccl_environment, hccl_limits
from doctor.smoke.onhost.torch_framework import Torch


def framework_of(backend: str, local: int, number: int | None) -> Torch:
    """Torch on the device with that number, else on the one with the rank's place on the host."""
    kinds: dict[str, type[Torch]] = {"gloo": Torch, "nccl": Cuda, "hccl": Npu}
    return kinds[backend](local if number is None else number)


class _Accelerator(Torch):
    """The functions that have the same names in torch.cuda and torch_npu.npu."""

    on_cpu = False
    _kind: str
    _module: str

    @property
    def _api(self) -> Any:
        # Not imported at the top: only the rank may load it, never the process that it is forked from.
        return importlib.import_module(self._module)

    @property
    def device(self) -> torch.device:
        assert self._api  # torch knows the name "npu" only once torch_npu is loaded
        return torch.device(self._kind, self.number)

    @property
    def product(self) -> str:
        return str(self._api.get_device_name(self.number))

    def set_up(self) -> None:
        super().set_up()
        if not self._api.is_available():
            asked = f"{self._module}.is_available()"
            raise RuntimeError(f"this torch sees no {self._kind} device: {asked} is False")
        self._api.set_device(self.number)

    def be_deterministic(self) -> None:
        """Hide torch's warnings of operations that cannot be: the trial of the first gradient shows them."""
        warnings.filterwarnings("ignore", message=".* does not have a deterministic implementation")
        # The same as use_deterministic_algorithms, which would load the compiler as well.
        torch.set_deterministic_debug_mode("warn")

    def synchronise(self) -> None:
        self._api.synchronize()

    def free_memory(self) -> float:
        return float(self._api.mem_get_info()[0])

    def seed(self, seed: int) -> None:
        super().seed(seed)
        self._api.manual_seed(seed)

    def draw_many(self, count: int) -> dict[str, bytes]:
        return {"device": self.bytes_of(torch.rand(count, device=self.device))}


class Cuda(_Accelerator):
    """A CUDA or ROCm device. A torch for ROCm has the same names: `torch.cuda` is HIP, "nccl" is RCCL."""

    backend = "nccl"
    _kind = "cuda"
    _module = "torch.cuda"

    def versions(self) -> dict[str, str]:
        # A tuple of numbers, with a suffix at its end if there is one.
        nccl = _answer_of(lambda: ".".join(str(part) for part in self._api.nccl.version()))
        hip = getattr(torch.version, "hip", None)
        runtime = {"hip": str(hip)} if hip else {"cuda": str(torch.version.cuda or "")}
        return _without_empty({**super().versions(), **runtime, "rccl" if hip else "nccl": nccl})

    def environment(self, timeout: float) -> dict[str, str]:  # noqa: ARG002
        """https://docs.pytorch.org/docs/stable/torch_nccl_environment_variables.html"""
        wanted = {
            # The old and the new name of the Flight Recorder's size; in older torch it is off by default.
            "TORCH_NCCL_TRACE_BUFFER_SIZE": "2000",
            "TORCH_FR_BUFFER_SIZE": "2000",
            # It is on by default and writes files into the home directory or /tmp.
            "TORCH_NCCL_DUMP_ON_TIMEOUT": "0",
            # Without it cuBLAS may round differently each time.
            "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
            **evidence.listen(),
        }
        if "NCCL_RAS_ADDR" not in os.environ:
            # Jobs that share a host should not share this port; the ranks of one run here have one parent.
            # https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-ras-addr
            wanted["NCCL_RAS_ADDR"] = f"localhost:{evidence.RAS_PORT + 1 + os.getppid() % 1000}"
        return wanted

    def evidence(self) -> str:
        dump = _answer_of(
            lambda: importlib.import_module("torch._C._distributed_c10d")._dump_nccl_trace_json()
        )
        said = ("NCCL", "\n".join(evidence.said())[:4000]), ("Flight Recorder", evidence.recorded(dump))
        return _paragraphs(*said, ("NCCL RAS", evidence.ras()))


class Npu(_Accelerator):
    backend = "hccl"
    _kind = "npu"
    _module = "torch_npu.npu"

    def versions(self) -> dict[str, str]:
        npu = importlib.import_module("torch_npu")
        ask = self._api.utils
        return _without_empty(
            {
                **super().versions(),
                "torch_npu": str(getattr(npu, "__version__", "")),
                "cann": _answer_of(lambda: ask.get_cann_version("CANN")),
                "hccl": _answer_of(lambda: ask.get_cann_version("HCCL")),
            }
        )

    def environment(self, timeout: float) -> dict[str, str]:
        """https://github.com/Ascend/pytorch/tree/master/docs/zh/api/environment_variable"""
        return {
            **hccl_environment(timeout),
            "TORCH_HCCL_TRACE_BUFFER_SIZE": "2000",
            "TORCH_HCCL_DUMP_ON_TIMEOUT": "0",
        }

    def limit(self, timeout: float) -> timedelta:
        return timedelta(seconds=hccl_limits(timeout)[2])

    def evidence(self) -> str:
        # `dump_hccl_trace_json` of torch_npu/csrc/distributed/Init.cpp
        dump = _answer_of(
            lambda: importlib.import_module("torch_npu")._C._distributed_c10d._dump_hccl_trace_json()
        )
        return _paragraphs(("Flight Recorder", evidence.recorded(dump)))


def _answer_of(question: Callable[[], Any]) -> Any:
    """The answer, or "" if this version of a library does not have the function."""
    try:
        return question()
    except (AttributeError, ImportError, RuntimeError, TypeError, ValueError):
        return ""


def _without_empty(versions: dict[str, str]) -> dict[str, str]:
    return {name: str(version) for name, version in versions.items() if version}


def _paragraphs(*said: tuple[str, str]) -> str:
    return "\n".join(f"{who}:\n{text}" for who, text in said if text)
