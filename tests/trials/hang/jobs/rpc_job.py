"""A master that asks its workers by RPC; the work that VICTIM does in its thread is the fault."""

from __future__ import annotations

import os
import time

from torch.distributed import rpc

from tests.trials.hang.jobs.strike import strike


def answer(rank: int, turn: int) -> int:
    strike(rank, turn)
    return turn


def main() -> None:
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=world)  # type: ignore[no-untyped-call]
    if rank == 0:
        for turn in range(1_000_000):
            time.sleep(0.02)
            for other in range(1, world):
                rpc.rpc_sync(f"worker{other}", answer, args=(other, turn), timeout=0)
    rpc.shutdown()


if __name__ == "__main__":
    main()
