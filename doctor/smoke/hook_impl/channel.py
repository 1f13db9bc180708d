"""How ranks exchange their hashes without any collective of the job. Nothing blocks: who waits polls."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from doctor.smoke.hook_impl.place import MOST, NotComparable, torch_distributed


class StoreChannel:
    """An exchange over the store of torch.distributed.

    Counters show what is there, because `add` never blocks. `wait` and `get` block until the time-out of the
    whole job, and the answer to an abandoned wait confused older stores.
    """

    def __init__(self, store: Any) -> None:
        self._store = store

    def put(self, box: str, name: str, text: str) -> None:
        self._store.set(f"doctor-hook/{box}/{name}", text)
        self._store.add(f"doctor-hook/{box}/{name}/there", 1)
        self._store.add(f"doctor-hook/{box}/count", 1)

    def count(self, box: str) -> int:
        return int(self._store.add(f"doctor-hook/{box}/count", 0))

    def there(self, box: str, name: str) -> bool:
        return int(self._store.add(f"doctor-hook/{box}/{name}/there", 0)) > 0

    def take(self, box: str, name: str) -> str:
        text: bytes = self._store.get(f"doctor-hook/{box}/{name}")
        return text.decode()


class FileChannel:
    """An exchange over a directory, empty at first, that all ranks see: for jobs without torch."""

    def __init__(self, path: str) -> None:
        self._path = path

    def put(self, box: str, name: str, text: str) -> None:
        folder = os.path.join(self._path, box)
        os.makedirs(folder, exist_ok=True)
        # Renamed when it is complete: no rank reads half of it.
        draft = os.path.join(self._path, f".{box}.{name}")
        with open(draft, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(draft, os.path.join(folder, name))

    def count(self, box: str) -> int:
        try:
            return len(os.listdir(os.path.join(self._path, box)))
        except FileNotFoundError:
            return 0

    def there(self, box: str, name: str) -> bool:
        return os.path.exists(os.path.join(self._path, box, name))

    def take(self, box: str, name: str) -> str:
        with open(os.path.join(self._path, box, name), encoding="utf-8") as file:
            return file.read(MOST)


if TYPE_CHECKING:  # Python 3.8 cannot evaluate it
    Channel = StoreChannel | FileChannel


def channel() -> Channel:
    folder = os.environ.get("DOCTOR_HOOK_DIR")
    if folder:
        return FileChannel(folder)
    distributed = torch_distributed()
    store = distributed.distributed_c10d._get_default_store() if distributed else None
    if store is None:
        raise NotComparable(
            "torch.distributed is not set up, and DOCTOR_HOOK_DIR names no directory that all ranks see"
        )
    return StoreChannel(store)


def group_ranks(group: Any) -> list[int] | None:
    """The ranks of a process group, numbered as in the whole job; a list of numbers is taken as it is."""
    if group is None:
        return None
    if isinstance(group, (list, tuple, range)):
        return sorted(int(rank) for rank in group)
    distributed = sys.modules.get("torch.distributed")
    if distributed is None:
        raise TypeError(f"a {type(group).__name__} is not a list of ranks")
    return sorted(int(rank) for rank in distributed.get_process_group_ranks(group))


def await_(condition: Callable[[], bool], limit: float) -> bool:
    """Poll until the condition holds, for at most `limit` seconds; returns whether it did."""
    end = time.monotonic() + limit
    pause = 0.001
    while not condition():
        if time.monotonic() >= end:
            return False
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)
    return True
