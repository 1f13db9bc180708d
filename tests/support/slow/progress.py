"""A stand-in for a GPU with NCCL: a thread computes and reduces; another one yields meanwhile."""

import ctypes
import importlib.util
import shutil
import threading
from collections.abc import Callable
from importlib.machinery import ExtensionFileLoader
from pathlib import Path


class Gpu:
    def __init__(
        self,
        compute: Callable[[], object],
        folder: Path,
        *,
        library: str = "libnccl.so.2",
        thread: str = "cuda-EvtHandlr",
    ) -> None:
        """`folder`: where the library is made, in which NCCL's thread sleeps: an extension of Python.

        `thread`: what a thread of CUDA is called.
        """
        folder.mkdir()
        found = importlib.util.find_spec("_queue")
        assert found is not None
        assert found.origin is not None
        copy = str(shutil.copy(found.origin, folder / library))
        spec = importlib.util.spec_from_loader("_queue", ExtensionFileLoader("_queue", copy))
        assert spec is not None
        assert spec.loader is not None
        queue = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(queue)
        self.compute, self.thread = compute, thread
        self.busy = False
        self.work, self.progress, self.done = (queue.SimpleQueue() for _ in range(3))
        for run in (self.runs, self.carries):
            threading.Thread(target=run, daemon=True).start()

    def runs(self) -> None:
        ctypes.CDLL(None).prctl(15, self.thread.encode())  # PR_SET_NAME
        while self.work.get():
            self.compute()
            self.busy = False
            self.done.put(True)

    def carries(self) -> None:
        libc = ctypes.CDLL(None)
        equal = ctypes.cast(libc.sched_yield, ctypes.c_void_p)
        while self.progress.get():
            while self.busy:
                libc.qsort(bytes(500), 500, 1, equal)  # some thousand times, without the GIL

    def launch(self) -> None:
        self.busy = True
        self.progress.put(True)
        self.work.put(True)

    def synchronize(self) -> None:
        self.done.get()
