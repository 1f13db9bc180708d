"""Each host alone, in an acceptance test: what its ranks compute and copy, and what its folders store."""

from __future__ import annotations

import fcntl
import math
import mmap
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

from doctor.smoke.onhost.comm import Comm
from doctor.smoke.onhost.encoding import encoded
from doctor.smoke.onhost.framework import Framework

TURNS, SLICE, PATIENT = 7, 0.05, 0.5
"""So many turns, each of so many seconds of computing, but of no more seconds on a crowded host."""
SIDE, SIDE_ON_DEVICE, COPIED = 512, 4096, 32 << 20
PIECE, PIECES, SMALL, LEAST_PIECES = 2 << 20, 8, 4096, 2
IN_MEMORY = ("tmpfs", "ramfs")
PART = 10
"""Of what is free in a folder, one part in so many may be taken."""
STORING, SYNCING, MOST_SYNCS = 1.0, 0.3, 200


def run(comm: Comm) -> None:
    """One pass. The first rank of a host asks its folders."""
    if comm.shape.paths:
        _compute(comm)
        for folder in comm.shape.paths if comm.place in comm.shape.firsts else ():
            _store(comm, folder)


def _compute(comm: Comm) -> None:
    framework, turns = comm.framework, min(TURNS, 2 * comm.shape.turns - 1)
    side = SIDE if framework.on_cpu else SIDE_ON_DEVICE
    numbers = encoded([math.sin(n) for n in range(1024)], "float32")
    x = framework.tensor(numbers * (side * side // 1024), "float32")
    source, target = b"\1" * COPIED, bytearray(COPIED)

    def multiply() -> None:
        framework.square(x, side)
        framework.synchronise()

    def copy() -> None:
        memoryview(target)[:] = source

    wall, size = time.perf_counter, float(COPIED)
    does = [("matmul", multiply, 2.0 * side**3, wall), ("copy", copy, 2 * size, time.thread_time)]  # type: list[tuple[str, Callable[[], object], float, Callable[[], float]]]
    if framework.on_cpu:
        does[0] = (*does[0][:3], framework.burnt)
    else:
        put, get = (partial(_wholly, framework, each) for each in framework.copies(source))
        does += [("to_device", put, size, wall), ("from_device", get, size, wall)]
    for what, do, amount, burnt in does:
        rates, shares = [], []
        for _ in range(turns + 1):
            began, since, done, spent, passed = burnt(), time.perf_counter(), 0, 0.0, 0.0
            while spent < SLICE and passed < PATIENT:
                do()
                done += 1
                spent, passed = burnt() - began, time.perf_counter() - since
                comm.page.mark()
            rates.append(done * amount / max(spent, 1e-9))
            shares.append(passed / max(spent, 1e-9))
        about = {"what": what, "rates": rates[1:], "stretch": sorted(shares[1:])[turns // 2]}
        comm.say({"ev": "alone", **about})


def _wholly(framework: Framework, copy: Callable[[], object]) -> None:
    copy()
    framework.synchronise()


def _store(comm: Comm, folder: str) -> None:
    """The file has no name, so that the kernel removes it with this process."""
    try:
        kind = _file_system(folder)
        for what, rates in _stored(folder, comm.page.mark, kind in IN_MEMORY).items():
            comm.say({"ev": "alone", "what": what, "folder": folder, "on": kind, "rates": rates})
    except OSError as error:
        why = error.strerror or str(error)
        comm.say({"ev": "alone", "what": "write", "folder": folder, "rates": [], "why": why[:200]})


def _file_system(folder: str) -> str:
    device = os.stat(folder).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as lines:
        kinds = [line.partition(" - ")[2].split()[0] for line in lines if line.split()[2] == number]
    return kinds[0][:40] if kinds else ""


def _stored(folder: str, mark: Callable[[], None], in_memory: bool) -> Mapping[str, list[float]]:
    """Bytes written and read a second, and small appends that are safe on the disk."""
    about = os.statvfs(folder)
    pieces = min(PIECES, about.f_bavail * about.f_frsize // PART // PIECE)
    if pieces < LEAST_PIECES:
        raise OSError(28, f"less than {LEAST_PIECES * PART * PIECE >> 20} MB is free")

    def rate(do: Callable[[], int]) -> float:
        began = time.perf_counter()
        done = do()
        mark()
        return done / max(time.perf_counter() - began, 1e-9)

    file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - Python 3.8 knows no `with (`
    with file, mmap.mmap(-1, PIECE) as block, memoryview(block) as data:
        data[:] = os.urandom(PIECE)
        number = file.fileno()

        def write(size: int) -> int:
            done = os.write(number, data[:size])
            os.fsync(number)
            return done

        found: dict[str, list[float]] = {"write": [], "read": [], "fsync": []}
        until = time.perf_counter() + STORING
        while len(found["write"]) < pieces and (
            len(found["write"]) < LEAST_PIECES or time.perf_counter() < until
        ):
            found["write"].append(rate(lambda: write(PIECE)))
        if in_memory:
            return {"write": found["write"]}
        with suppress(OSError):  # not every file system reads past its cache
            flags = fcntl.fcntl(number, fcntl.F_GETFL)
            fcntl.fcntl(number, fcntl.F_SETFL, flags | os.O_DIRECT)
            for piece in range(len(found["write"])):
                os.lseek(number, piece * PIECE, os.SEEK_SET)
                found["read"].append(rate(lambda: os.readv(number, [data])))
            fcntl.fcntl(number, fcntl.F_SETFL, flags)
        until = time.perf_counter() + SYNCING

        def append() -> int:
            count = 0
            while count < MOST_SYNCS and (count < LEAST_PIECES or time.perf_counter() < until):
                write(SMALL)
                mark()
                count += 1
            return count

        found["fsync"].append(rate(append))
    return {what: rates for what, rates in found.items() if rates}
