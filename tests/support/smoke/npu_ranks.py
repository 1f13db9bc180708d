"""Ranks on this machine with the emulated torch_npu, to test what it refuses.

The ranks are forked from one process that has torch, as those of the smoke run are, and load torch_npu then.
"""

import json
import os
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

from tests.lab.npu_products import PRODUCTS
from tests.lab.npu_python import TorchNpu, write
from tests.support.paths import ROOT

Seat = tuple[str, int]
"""The name of a server, and the number of one of its devices."""


def run(
    folder: Path,
    product: str,
    seats: list[Seat],
    body: str,
    way: TorchNpu | None = None,
    **env: str,
) -> list[dict[str, Any]]:
    """What each rank reported; `body` is Python that has `torch`, `dist`, `npu`, `device`, `rank` and `say`.

    A rank that ended with an error reports it as "error".
    """
    write(folder, str(folder), PRODUCTS[product], way or TorchNpu())
    (folder / "store").unlink(missing_ok=True)
    told = json.dumps({"seats": seats, "body": body, "store": str(folder / "store")})
    done = subprocess.run(
        [str(folder / "npu-python"), "-W", "ignore", "-m", "tests.support.smoke.npu_ranks", told],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", **env},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    said = [json.loads(line) for line in done.stdout.splitlines()]
    return sorted(said, key=lambda one: int(one["rank"]))


def _rank(told: dict[str, Any], rank: int) -> dict[str, Any]:
    import importlib

    import torch
    import torch.distributed as dist
    from torch.distributed import FileStore  # type: ignore[attr-defined]

    said: dict[str, Any] = {"rank": rank}
    server, number = told["seats"][rank]
    os.environ["EMULATED_NPU_SERVER"] = server
    try:
        torch.set_num_threads(1)
        npu = importlib.import_module("torch_npu.npu")
        npu.set_device(number)
        size = len(told["seats"])
        dist.init_process_group("hccl", store=FileStore(told["store"], size), rank=rank, world_size=size)
        device = torch.device("npu", number)
        names = {"torch": torch, "dist": dist, "npu": npu, "device": device, "rank": rank, "said": said}
        exec(told["body"], {**names, "say": said.__setitem__, "refused": _refused})
    except BaseException as error:  # whatever ends it is its answer
        said["error"] = f"{type(error).__name__}: {error}"
        traceback.print_exc()
    return said


def _refused(call: Any) -> str:
    """The error of a call; empty if it has none."""
    try:
        call()
    except RuntimeError as error:
        return str(error)
    return ""


def main() -> None:
    import torch.distributed  # noqa: F401

    told = json.loads(sys.argv[1])
    if not os.path.exists(os.environ["EMULATED_NPU_OS"]):
        del os.environ["EMULATED_NPU_OS"]  # no test of it
    for rank in range(len(told["seats"])):
        if os.fork() == 0:
            os.write(1, (json.dumps(_rank(told, rank)) + "\n").encode())
            os._exit(0)
    for _ in told["seats"]:
        os.wait()


if __name__ == "__main__":
    main()
