"""The dynamic cluster: a scheduler with which the workers of a job meet."""

from __future__ import annotations

import os
import signal
from datetime import timedelta
from typing import Any

import torch.distributed as dist
from torch.distributed import TCPStore  # type: ignore[attr-defined]

WORLD = "mccl_world_group"
GROUPS: dict[str, Any] = {}
CLUSTER: list[Any] = []


def init() -> None:
    host, port = os.environ["MS_SCHED_HOST"], int(os.environ["MS_SCHED_PORT"])
    world, limit = int(os.environ["MS_WORKER_NUM"]), timedelta(seconds=int(os.environ["MS_TOPO_TIMEOUT"]))
    if os.environ["MS_ROLE"] == "MS_SCHED":
        store = TCPStore(host, port, is_master=True, wait_for_workers=False, timeout=limit)
        while store:
            signal.pause()
    store = TCPStore(host, port, timeout=limit)
    dist.init_process_group(
        "gloo", store=store, rank=int(os.environ["MS_NODE_ID"]), world_size=world, timeout=limit
    )
    GROUPS[WORLD] = dist.group.WORLD
    CLUSTER.append(store)


def create_group(name: str, members: list[int]) -> None:
    if dist.get_rank() not in members:
        raise RuntimeError(f"The group {name} is created by its members only")
    GROUPS[name] = dist.new_group(members, use_local_synchronization=True)
