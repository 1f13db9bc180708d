"""Memory and disk: whether the ranks on a host have enough."""

from collections.abc import Iterator
from shlex import quote

from doctor.api import (
    EXPECT,
    PLAN,
    RANKS,
    Confidence,
    Damage,
    Evidence,
    Expect,
    JobPlan,
    Problem,
    Severity,
    Skip,
    Undecided,
    View,
    check,
    maybe,
)
from doctor.facts.memory import MB, MEMORY, SEGMENTS, SPACES, Memory, Segment, Space, Spaces

SHM, NULL = "/dev/shm", "/dev/null"
DOCKER_DEFAULT = 64 * MB
CONNECTIONS_PER_RANK = 4
"""Sending and receiving, with two neighbours."""
FEW_INODES = 64
"""A rank with its data loaders creates more files than that."""
SHARE_LEFT = 0.1
"""With more than this share free, a file system is small and not full."""


def _shm_need(ranks: int, expect: Expect) -> int:
    """The bytes that the ranks on this host need in /dev/shm."""
    mb = expect.shm_mb or ranks * CONNECTIONS_PER_RANK * expect.shm_mb_per_connection
    return mb * MB


def _shm(spaces: Spaces) -> Space:
    shm = spaces.at(SHM)
    if shm is None:
        raise Undecided("/dev/shm could not be examined")
    return shm


@check("shm-small", SPACES, RANKS, EXPECT, damage=Damage.LOAD, remedy="grow-shm")
def shm_small(spaces: Spaces, ranks: int, expect: Expect) -> Iterator[Problem]:
    """/dev/shm is too small for the ranks that will share it.

    Why it matters: ranks on one host exchange data through /dev/shm: a NCCL connection takes about 10 MB, and
    data loaders pass their batches there. Docker gives a container 64 MB by default. A job then
    fails with "No space left on device" or dies with a bus error, often only after the first steps.

    What to do: give a container --shm-size or --ipc=host (in Kubernetes an emptyDir of medium Memory); on a
    host, remount /dev/shm larger.
    """
    need = _shm_need(ranks, expect)
    if SHM in spaces.gone:
        yield Problem(
            "there is no /dev/shm",
            expected=f"{need // MB} MB",
            actual="no such directory",
            values=_size(need),
        )
        return
    shm = _shm(spaces)
    if shm.total < need:
        docker = shm.total == DOCKER_DEFAULT
        yield Problem(
            "/dev/shm is too small for the ranks on this host"
            + (": this is Docker's default size" if docker else ""),
            expected=f"{need // MB} MB for {ranks} ranks",
            actual=f"{shm.total // MB} MB",
            subject=SHM,
            evidence=(
                Evidence("df -kP /dev/shm", f"{shm.total // 1024} kB in all, {shm.free // 1024} kB free"),
            ),
            values=_size(need),
        )


def _size(need: int) -> dict[str, str | int]:
    return {"size": f"{max(1024, 2 * need // MB)}m"}


@check("shm-full", SPACES, maybe(SEGMENTS), RANKS, EXPECT, damage=Damage.LOAD, remedy="clear-shm")
def shm_full(
    spaces: Spaces, segments: tuple[Segment, ...] | None, ranks: int, expect: Expect
) -> Iterator[Problem]:
    """/dev/shm is large enough, but too little of it is free.

    Why it matters: files that an earlier job left there (nccl-*, torch_*, psm_*) keep their memory until they
    are deleted or the host restarts; the next job fails as with a small /dev/shm. It also fails ("No space
    left on device") if no inode is left, because no further file can be created.

    What to do: find the processes that still use the named files (fuser), and delete unused files.
    """
    need = _shm_need(ranks, expect)
    if SHM in spaces.gone:
        raise Skip("there is no /dev/shm")
    shm = _shm(spaces)
    if shm.inodes is not None and shm.inodes < FEW_INODES:
        yield _no_inodes(shm)
    if shm.total < need or shm.free >= need:
        return
    largest = (segments or ())[:5]
    names = ", ".join(f"{segment.name} ({segment.size // MB} MB, {segment.owner})" for segment in largest)
    yield Problem(
        "/dev/shm is nearly full",
        expected=f"{need // MB} MB free for {ranks} ranks",
        actual=f"{shm.free // MB} MB free of {shm.total // MB} MB" + (f"; largest: {names}" if names else ""),
        subject=SHM,
        evidence=(
            Evidence("df -kP /dev/shm", f"{shm.free // 1024} kB free"),
            *(Evidence("ls -l /dev/shm", f"{s.size} {s.owner} {s.name}") for s in largest),
        ),
        values={"file": f"/dev/shm/{largest[0].name}"} if largest else {},
    )


@check("memory-low", MEMORY, RANKS, EXPECT, damage=Damage.LOAD, severity=Severity.WARN)
def memory_low(memory: Memory, ranks: int, expect: Expect) -> Iterator[Problem]:
    """Little memory is free for the ranks on the host.

    Why it matters: a rank needs some hundred MB before it has loaded anything; the kernel ends the largest
    process, usually a rank, when memory runs out, and the others hang.

    What to do: find the process that holds the memory (a leftover of an earlier job; page cache is not
    counted). If a container's limit is too low and the host has enough, the finding says so: raise the limit.
    """
    need = ranks * expect.memory_mb_per_rank * MB
    limit = memory.limited and memory.host >= need
    if memory.available < need:
        yield Problem(
            "little memory is free" + (" within the container's limit" if limit else ""),
            expected=f"{need // MB} MB for {ranks} ranks",
            actual=f"{memory.available // MB} MB of {memory.total // MB} MB"
            + ("; the host itself has enough" if limit else ""),
            severity=Severity.FAIL if memory.available < need // 4 else None,
            evidence=(
                Evidence("/proc/meminfo", f"available: {memory.host // 1024} kB"),
                *([Evidence("memory of the cgroup", f"limit: {memory.total // 1024} kB")] if limit else []),
            ),
            remedy="raise-memory-limit" if limit else "free-memory",
            values={"size": f"{-(-(memory.total - memory.available + need) // MB)}m"} if limit else {},
            view=None if limit else View.HOST,
        )


@check("disk-full", SPACES, EXPECT, damage=Damage.LOAD, severity=Severity.WARN)
def disk_full(spaces: Spaces, expect: Expect) -> Iterator[Problem]:
    """A file system that jobs write to is nearly full.

    Why it matters: logs, compiled kernels and checkpoints end up in /tmp and the home directory; a rank that
    cannot write them stops alone, and the others wait for it. Without inodes no file can be created, however
    many bytes are free.

    What to do: find the files that fill it. File systems on the network are not examined.
    """
    told: set[str] = set()
    for space in spaces.places:
        if space.path == SHM or space.mount in told or not space.writable:
            continue
        if space.inodes is not None and space.inodes < FEW_INODES:
            told.add(space.mount)
            yield _no_inodes(space)
            continue
        if space.free >= expect.disk_free_mb * MB:
            continue
        told.add(space.mount)
        filled = space.free < space.total * SHARE_LEFT
        yield Problem(
            f"{space.path} is nearly full" if filled else f"{space.path} has little room",
            expected=f"{expect.disk_free_mb} MB free",
            actual=f"{space.free // MB} MB free on {space.mount}",
            subject=space.path,
            severity=Severity.FAIL if space.free < expect.disk_fail_mb * MB else None,
            confidence=_of_every_job(space) if filled else Confidence.STRONG,
            evidence=(Evidence(f"df -kP {space.path}", f"{space.free // 1024} kB free on {space.mount}"),),
            commands=(f"du -xh --max-depth=2 {quote(space.mount)} | sort -h | tail",),
        )
    if spaces.remote:
        raise Undecided(f"{', '.join(spaces.remote)} is on a network file system, which is not looked at")


def _of_every_job(space: Space) -> Confidence:
    """Certain if every job writes there; a home with a file system of its own is this login's alone."""
    return Confidence.CERTAIN if space.path in ("/tmp", SHM) or space.mount == "/" else Confidence.STRONG


def _no_inodes(space: Space) -> Problem:
    left = "no inode is" if not space.inodes else f"{space.inodes} inodes are"
    return Problem(
        f"no more files can be created in {space.path}: it has no inodes left",
        expected=f"at least {FEW_INODES} inodes free",
        actual=f"{left} free on {space.mount}; {space.free // MB} MB are",
        subject=space.path,
        severity=Severity.FAIL,
        confidence=_of_every_job(space),
        evidence=(Evidence(f"df -iP {space.path}", f"{space.inodes} inodes free on {space.mount}"),),
        commands=(
            f"du -x --inodes --max-depth=2 {quote(space.mount)} | sort -n | tail  # where the files are",
        ),
    )


@check("tmp-not-writable", SPACES, PLAN, damage=Damage.BLOCKED)
def tmp_not_writable(spaces: Spaces, plan: JobPlan) -> Iterator[Problem]:
    """The login cannot write to /tmp, TMPDIR, its home, /dev/shm or /dev/null, or a disk is read-only.

    Why it matters: Python, compilers and communication libraries put locks, sockets and compiled kernels
    there, and fail at start when they cannot. A program of root that removes or replaces /dev/null leaves a
    file there: it grows, what reads from it gets text, and others cannot write to it.

    How it is known: by asking as the login. Root may write anywhere, so for a node the mode of /tmp and
    /dev/shm counts, too. A disk that the kernel stopped writing to after an error has a mount for reading and
    writing, and a superblock that is read-only (/proc/self/mountinfo); a root that is read-only by design has
    not.

    What to do: fix the permissions (/tmp and /dev/shm: 1777). If a file system went read-only, the kernel log
    says why: check it (fsck) and its disk before it is mounted for writing again.
    """
    for path in spaces.gone:
        if path == NULL:
            yield _no_null()
        elif path != SHM or plan.of_node:  # shm-small has it for a job
            yield _unwritable(path, "it does not exist")
    for mount in spaces.forced:
        yield _forced(mount)
    for space in spaces.places:
        if not space.writable and space.mount not in spaces.forced:
            yield _unwritable(space.path, "it cannot be written by this login, or is mounted read-only")
        elif space.closed and plan.of_node:
            yield _unwritable(space.path, "its mode lets nobody but its owner and group write there")
    if spaces.remote:
        raise Undecided(f"{', '.join(spaces.remote)} is on a network file system, which is not looked at")


def _no_null() -> Problem:
    actual = "it is missing or a file, or this login cannot write to it"
    return Problem(
        "/dev/null is not the device that it should be",
        expected="a character device, mode 0666",
        actual=actual,
        subject=NULL,
        evidence=(Evidence("test -c /dev/null -a -w /dev/null", actual),),
        commands=("sudo sh -c 'rm -f /dev/null; mknod -m 666 /dev/null c 1 3'",),
    )


def _forced(mount: str) -> Problem:
    actual = "it was mounted for writing, and the kernel made it read-only"
    return Problem(
        f"the file system at {mount} went read-only",
        expected="a writable file system",
        actual=actual,
        subject=mount,
        evidence=(Evidence("/proc/self/mountinfo", actual),),
        commands=(f"findmnt {quote(mount)}; dmesg -T | grep -iE 'read-?only|(ext4|xfs|btrfs|f2fs).*error'",),
    )


def _unwritable(path: str, actual: str) -> Problem:
    return Problem(
        f"{path} cannot be written to",
        expected="a directory that is writable for this login",
        actual=actual,
        subject=path,
        severity=None if path in ("/tmp", SHM) else Severity.WARN,  # a container may do without a home
        evidence=(Evidence(f"test -w {path}", actual),),
        commands=(f"ls -ld {quote(path)}; findmnt -T {quote(path)}",),
    )


@check("tmp-noexec", SPACES, damage=Damage.RISK, severity=Severity.WARN)
def tmp_noexec(spaces: Spaces) -> Iterator[Problem]:
    """No program may be run from /tmp or from the home directory (mount option noexec).

    Why it matters: what a training compiles for itself is loaded from there: kernels of torch.compile and
    Triton, extensions of torch and DeepSpeed. It stops with "failed to map segment from shared object". A
    training that compiles nothing does not notice.

    What to do: name a directory elsewhere with TMPDIR, TORCHINDUCTOR_CACHE_DIR, TRITON_CACHE_DIR or
    TORCH_EXTENSIONS_DIR, or mount the file system without noexec.
    """
    for path in spaces.noexec:
        yield Problem(
            f"nothing that is compiled in {path} may be run",
            expected="a file system without the option noexec",
            actual="it is mounted with noexec",
            subject=path,
            evidence=(Evidence("/proc/self/mountinfo", f"noexec at {path}"),),
            commands=(f"findmnt -T {quote(path)} -o TARGET,OPTIONS",),
        )
