"""What the threads of a rank show about collectives, without a stack.

For each group, in order of creation, gloo starts one `gloo_tcp_loop` and then the group's workers. A worker
waits with a time limit if and only if its rank is inside a collective of that group.
"""

import re
from collections.abc import Sequence

from doctor.live.evidence import JobMember, Look, Thread
from doctor.live.onhost import syscalls
from doctor.live.places import main_thread

_LOOP, _WORKER = "gloo_tcp_loop", "pt_gloo_runloop"
_DEVICE = ("cuda", "nccl", "pt_nccl", "hccl", "pt_hccl", "acl_", "npu")
_NPU = ("hccl", "pt_hccl", "acl_", "npu")
PRIVATE = 0x80
"""The flag of a futex that no other process uses."""
IDLE = 2
"""Ticks that a waiting process may use between the looks."""


def main(look: Look | None) -> Thread | None:
    """The thread that trains, as the kernel sees it: mostly the first."""
    if look is None or not look.threads:
        return None
    found = main_thread(look)
    return next((each for each in look.threads if found and each.tid == found.tid), look.threads[0])


def waiting(member: JobMember) -> Look | None:
    """The last look in which its main thread waits. One that tries again and again may run, or wait for a
    processor, in any of them.
    """
    seen = [look for look in (member.a, member.b) if look is not None]
    waits = [
        look for look in seen if (thread := main(look)) and (thread.waits not in ("", "0") or look.kernel)
    ]
    return next(reversed(waits or seen), None)


def in_kernel(look: Look | None, names: Sequence[str]) -> bool:
    """Whether its main thread waits in a function of the kernel with such a name."""
    waits = main(look)
    said = ((waits.waits,) if waits else ()) + (look.kernel if look else ())
    return any(each.lstrip("_").startswith(name) or f"_{name}" in each for each in said for name in names)


def _call(thread: Thread) -> str:
    """The name of the system call that it is in. A number is one of x86-64, in an earlier recording."""
    name = thread.syscall[0] if thread.syscall else ""
    return syscalls.NAMES["x86_64"].get(name, name)


def _timed(thread: Thread) -> bool:
    if _call(thread) == "restart_syscall":
        return True
    return _call(thread) == "futex" and len(thread.syscall) > 4 and thread.syscall[4] != "0x0"


def gloo_groups(look: Look | None) -> tuple[int, ...] | None:
    """The groups in which the rank waits; None if it has no groups, or its threads may not be read."""
    groups: list[bool] = []
    workers = 0
    for thread in sorted(look.threads, key=lambda thread: thread.tid) if look else ():
        if thread.name == _LOOP:
            groups.append(False)
        elif thread.name == _WORKER and groups:
            if not thread.syscall:
                return None
            workers += 1
            groups[-1] = groups[-1] or _timed(thread)
    return tuple(at for at, waits in enumerate(groups) if waits) if workers else None


def uses_gloo(look: Look | None) -> bool:
    return any(thread.name in (_LOOP, _WORKER) for thread in (look.threads if look else ()))


def uses_device(look: Look | None) -> bool:
    """Whether an accelerator's runtime runs in it: then a collective needs no waiting thread on the host."""
    return any(thread.name.lower().startswith(_DEVICE) for thread in (look.threads if look else ()))


def uses_npu(look: Look | None) -> bool:
    return any(thread.name.lower().startswith(_NPU) for thread in (look.threads if look else ()))


def polls(thread: Thread | None) -> bool:
    """Whether it waits for input of some kind: from a store, a pipe, a data loader."""
    if thread is None:
        return False
    if thread.waits not in ("", "0"):
        return "poll" in thread.waits or "select" in thread.waits
    return _call(thread) in syscalls.POLLS


def reads_file(thread: Thread | None) -> bool:
    return thread is not None and _call(thread) in syscalls.READS


def in_futex(thread: Thread | None) -> bool:
    if thread is None:
        return False
    return thread.waits.startswith("futex") or _call(thread) == "futex"


def shares(thread: Thread | None) -> bool | None:
    """Whether other processes can use the lock that it waits for; None if unknown."""
    found = re.match(r"0x([0-9a-f]+)\Z", "".join(thread.syscall[2:3])) if thread else None
    return not int(found[1], 16) & PRIVATE if found else None


def waits_with_limit(thread: Thread | None) -> bool:
    """Whether it waits with a time limit: for gloo's send or recv, which have no worker, or for a lock."""
    return thread is not None and in_futex(thread) and bool(thread.syscall) and _timed(thread)


def woken(a: Look | None, b: Look | None) -> bool:
    """Whether the main thread ran between the looks."""
    first, last = main(a), main(b)
    return first is not None and last is not None and first.switches != last.switches


def slept(a: Look | None, b: Look | None) -> bool:
    """Whether the main thread was not woken between the looks, and no other thread computed."""
    first, last = main(a), main(b)
    if first is None or last is None or a is None or b is None:
        return False
    return first.switches == last.switches > 0 and b.cpu - a.cpu <= IDLE


def idle(a: Look | None, b: Look | None) -> bool:
    """Whether the main thread waits for another thread and was not woken between the looks."""
    return slept(a, b) and in_futex(main(a)) and in_futex(main(b))
