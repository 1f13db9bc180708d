"""Names of system calls. Their numbers differ: 98 is futex on aarch64, and getrusage on x86-64."""

from collections.abc import Sequence

READS = frozenset(("read", "write", "pread64", "pwrite64", "readv", "writev"))
"""Calls that read or write. Their first argument is a descriptor."""
TALKS = READS | {"recvfrom", "recvmsg", "sendto", "sendmsg"}
"""Those that need one descriptor, which is their first argument."""
EPOLLS = frozenset(("epoll_wait", "epoll_pwait", "epoll_pwait2"))
POLLS = frozenset(("poll", "ppoll", "select", "pselect6", *EPOLLS))


def _numbers(text: str) -> "dict[str, str]":
    return dict(each.split() for each in text.split(", "))


_GENERIC = _numbers(
    "22 epoll_pwait, 63 read, 64 write, 65 readv, 66 writev, 67 pread64, 68 pwrite64, 72 pselect6, "
    "73 ppoll, 98 futex, 128 restart_syscall, 206 sendto, 207 recvfrom, 211 sendmsg, 212 recvmsg, "
    "441 epoll_pwait2"
)
NAMES = {
    "x86_64": _numbers(
        "0 read, 1 write, 7 poll, 17 pread64, 18 pwrite64, 19 readv, 20 writev, 23 select, 44 sendto, "
        "45 recvfrom, 46 sendmsg, 47 recvmsg, 202 futex, 219 restart_syscall, 232 epoll_wait, "
        "270 pselect6, 271 ppoll, 281 epoll_pwait, 441 epoll_pwait2"
    ),
    "aarch64": _GENERIC,
    "loongarch64": _GENERIC,
    "riscv64": _GENERIC,
}
"""By the machine's name, as uname prints it."""


def named(call: "Sequence[str]", machine: str) -> "list[str]":
    """The call of /proc/PID/syscall with its name in place of its number, or with "call NUMBER"; empty if the
    numbers of this machine are unknown.
    """
    if not call or machine not in NAMES:
        return []
    name = NAMES[machine].get(call[0]) or (f"call {call[0]}" if call[0].isdigit() else call[0])
    return [name, *call[1:]]
