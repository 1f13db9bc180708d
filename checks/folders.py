"""The folders that ranks need: on every host, the same ones, with what a job wants of them."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from shlex import join, quote

from doctor.api import (
    PLAN,
    Ask,
    Capture,
    Confidence,
    Damage,
    Evidence,
    Fact,
    FolderNeed,
    JobPlan,
    Problem,
    Run,
    Scope,
    Severity,
    Skip,
    Undecided,
    check,
    fold,
    maybe,
)
from doctor.rules.machines import votes_of

PATIENCE = 3
"""Seconds after which a folder does not answer."""
MOST_NAMES = 20_000
MANY = "many"
"""The names of a folder with more entries: such folders count as alike."""
_LOOK = r"""place() {
  at=
  while read -r source mount type options _; do
    case $1/ in "${mount%/}/"*) at="${options%%,*} $source $type $mount" ;; esac
  done </proc/mounts
}
n=0
for p; do
  n=$((n + 1))
  place "$p"
  printf 'mount %s %s\n' $n "$at"
  {
    kind=missing access=ro
    if [ -d "$p" ]; then kind=folder; [ -x "$p" ] || kind=closed
    elif [ -e "$p" ]; then kind=file
    fi
    [ ! -w "$p" ] || access=rw
    space=
    [ $kind != folder ] || space=$(df -kP -- "$p" | tail -n 1)
    echo "look $n $kind $access"
    if [ "$space" ]; then
      printf 'space %s %s\n' $n "$space"
      place "/${space#*% /}"
      printf 'real %s %s\n' $n "$at"
    fi
    if [ $kind = folder ]; then
      printf 'inodes %s %s\n' $n "$(df -iP -- "$p" | tail -n 1)"
      if names=$(LC_ALL=C ls -A -- "$p"); then
        names=$(printf '%s\n' "$names" | awk '$0 != "lost+found" && n++ < 20001')
        printf 'names %s %s %s\n' $n "$(printf '%s\n' "$names" | wc -l)" "$(printf %s "$names" | cksum)"
      fi
    fi
  } 2>/dev/null 5>&- &
done | timeout 3 cat || :
"""
"""The mount is looked up first, because touching a path may hang; a process of its own touches each. A folder
of a dead server may exist in the cache, but df asks the server, and names the mount to which a link leads.
"""
_ROW = re.compile(r"(.*?) +(\d{1,20}|-) +(\d{1,20}|-) +(-?\d{1,20}|-) +\S+ +/")
_SHARED = re.compile(
    r"nfs\d?|cifs|smb\w*|lustre|ceph|gpfs|9p|afs|beegfs\w*|glusterfs|pvfs2|wekafs|virtiofs|fuse(\..*)?|autofs"
)


@dataclass(frozen=True, slots=True)
class Folder:
    """`kind`: "folder", "file", "closed" to this user, "missing", or "" if it did not answer. `free` and
    `total` are in kilobytes. None is unknown.
    """

    kind: str
    writable: bool = False
    read_only: bool = False
    """Whether it is mounted so."""
    source: str = ""
    """The server and its folder, or the device."""
    type: str = ""
    mount: str = ""
    free: int | None = None
    total: int | None = None
    inodes: int | None = None
    entries: int | None = None
    names: str = ""
    """Tells folders with other entries apart; empty if they were not read."""

    @property
    def is_shared(self) -> bool:
        """Whether its file system is a server's, as far as the mount tells."""
        named = ":" in self.source or self.source.startswith("//")
        return named or _SHARED.fullmatch(self.type) is not None


def _ask(ask: Ask) -> str:
    return f"set -- {join(ask.folders)}\n{_LOOK}" if ask.folders else ""


def _folders(capture: Capture) -> Mapping[int, Folder]:
    rows: dict[int, dict[str, str]] = {}
    for what, number, rest in re.findall(r"^(\w+) (\d{1,3}) ?(.*)$", capture.stdout, re.MULTILINE):
        rows.setdefault(int(number), {})[what] = rest
    return {number: _folder(row) for number, row in rows.items() if "mount" in row}


def _folder(row: Mapping[str, str]) -> Folder:
    mode, source, kind, mount = (*row.get("real", row["mount"]).split(" ", 3), "", "", "", "")[:4]
    look = row.get("look", "").split(" ")
    space, inodes = (_ROW.match(row.get(word, "")) for word in ("space", "inodes"))
    found = re.fullmatch(r" *(\d{1,6}) (\d{1,10} (\d{1,10}))", row.get("names", ""))
    entries = None if found is None else int(found[1]) if found[3] != "0" else 0
    return Folder(
        kind=look[0],
        writable=look[1:2] == ["rw"],
        read_only=mode == "ro",
        source=space[1] if space else source,
        type=kind,
        mount=mount,
        free=_number(space[4]) if space else None,
        total=_number(space[2]) if space else None,
        inodes=_number(inodes[4]) if inodes and inodes[2] not in "0-" else None,
        entries=entries,
        names="" if found is None else MANY if int(found[1]) > MOST_NAMES else found[2],
    )


def _number(text: str) -> int | None:
    return None if text == "-" else int(text)


FOLDERS: Fact[Mapping[int, Folder]] = Fact("folders", Run(_ask), _folders, timeout=PATIENCE + 2, slow=True)
"""The folders by their place in the list of those that the job needs, from 1."""

UNITS = ("KB", "MB", "GB", "TB", "PB")
_KINDS = ("", "missing", "file", "closed", "folder")


@check("folder-unfit", PLAN, maybe(FOLDERS), damage=Damage.BLOCKED)
def folder_unfit(plan: JobPlan, folders: Mapping[int, Folder] | None) -> Iterator[Problem]:
    """A folder that the job needs is missing, closed, full, read-only, or does not answer.

    Why it matters: the ranks of this host end at the first file that they open or write, hours after the
    start if it is a checkpoint, and the others wait for them. A file system that does not answer stops every
    process that touches it, and such a process cannot be killed.

    How it is known: each folder of `--needs PATH[:rw][:SIZE]`, or of `needs:` in the inventory, is looked at
    by a process of its own, which is given up after 3 seconds. Nothing in it is read or written: whether this
    user may write is what the system says about the folder.

    What to do: mount it, make room, or give this user the right.
    """
    if not plan.needs:
        raise Skip("no folder was named (--needs)")
    for number, need in enumerate(plan.needs, 1):
        found = (folders or {}).get(number)
        if found is None or found.kind not in _KINDS:
            raise Undecided(f"the host said nothing about {need.path}", essential=True)
        if why := _unfit(need, found):
            summary, expected, actual, command = why
            yield Problem(
                summary,
                expected=f"{need.path}: {expected}",
                actual=actual,
                subject=need.path,
                evidence=(
                    Evidence("mount", f"{found.source or '?'} on {found.mount or '?'} ({found.type})"),
                ),
                commands=(command,),
            )
        elif need.free and found.free is None:
            raise Undecided(f"the host did not say how much of {need.path} is free", essential=True)


def _unfit(need: FolderNeed, found: Folder) -> tuple[str, str, str, str] | None:
    """What is wrong, what should be, what is, and what to type."""
    path, mount = quote(need.path), quote(found.mount)
    if not found.kind:
        actual = f"no answer in {PATIENCE} s from {found.source or 'it'}"
        line = "ps -eo pid,stat,wchan:32,args | awk '$2 ~ /^D/'"
        if found.is_shared and found.mount.startswith("/") and found.mount != "/":
            line = f"sudo umount -f -l {mount} && sudo mount {mount}"
        return "a folder that the job needs does not answer", "an answer", actual, line
    if found.kind == "missing":
        return "a folder that the job needs is not there", "a folder", "no such folder", "sudo mount -a"
    if found.kind == "file":
        return "a folder that the job needs is a file", "a folder", "a file", f"ls -l {path}"
    if found.kind == "closed":
        summary = "a folder that the job needs is closed to this user"
        return summary, "open to this user", "not open to this user", f"ls -ld {path}; id"
    if need.writable and (found.read_only or not found.writable):
        actual = "mounted read-only" if found.read_only else "not writable by this user"
        mended = f"sudo mount -o remount,rw {mount}    # for good: /etc/fstab"
        line = mended if found.read_only else f"ls -ld {path}; id"
        return "a folder that ranks write to is not writable", "writable", actual, line
    if need.free and found.free is not None and found.free < need.free:
        line = f"du -xhd1 {path} | sort -h | tail"
        actual, expected = f"{_size(found.free)} free", f"{_size(need.free)} free"
        return "a folder that the job needs has too little room", expected, actual, line
    if need.writable and found.inodes == 0:
        line = f"du --inodes -xd1 {path} | sort -n | tail"
        return "a folder that ranks write to has no inodes left", "free inodes", "0 free inodes", line
    return None


def _size(kilobytes: int) -> str:
    value, unit = float(kilobytes), 0
    while value >= 1024 and unit < len(UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:.4g} {UNITS[unit]}"


@check(
    "folder-differs",
    PLAN,
    maybe(FOLDERS),
    damage=Damage.WRONG,
    scope=Scope.CLUSTER,
    severity=Severity.WARN,
    several_hosts=True,
)
def folder_differs(plan: JobPlan, folders: Mapping[str, Mapping[int, Folder]]) -> Iterator[Problem]:
    """A folder that the job needs is another one on some hosts.

    Why it matters: where a shared file system is not mounted, its empty mount point is there in its place:
    ranks find no data, or write their checkpoints where nobody looks for them. Copies that are not complete
    give ranks other samples.

    How it is known: hosts say from where the folder is mounted, how large that file system is, and which
    names are in it, up to 20,000 of them. What has the same names or the same size is the same folder: the
    server itself, one server under two names, a whole copy. A fault: on most hosts the folder is a server's,
    and here it is an empty one of the host alone. A warning: it is of the host alone and not proved to be the
    same; servers differ, and the names in it, too; or copies that ranks only read have other names.

    What to do: mount it, or complete the copy, on the hosts that the finding names.
    """
    if not plan.needs:
        raise Skip("no folder was named (--needs)")
    for number, need in enumerate(plan.needs, 1):
        there = {h: own[number] for h, own in folders.items() if number in own}
        there = {host: found for host, found in there.items() if found.kind == "folder"}
        shared = {host: found for host, found in there.items() if found.is_shared}
        alone = {host: found for host, found in there.items() if host not in shared}
        if shared:
            yield from _not_mounted(need, shared, alone)
            yield from _unlike(need, {h: (each.source, each.names) for h, each in shared.items()}, there)
        elif not need.writable:
            yield from _unlike(need, {h: ("", each.names) for h, each in alone.items()}, there)


def _not_mounted(
    need: FolderNeed, shared: Mapping[str, Folder], alone: Mapping[str, Folder]
) -> Iterator[Problem]:
    usual = votes_of({host: found.source for host, found in shared.items()})[0][0]
    first = shared[usual[1][0]]
    names = {found.names for found in shared.values() if found.entries}
    sizes = {found.total for found in shared.values() if found.total}
    for host, found in alone.items():
        if found.names in names or found.total in sizes:
            continue
        certain = found.entries == 0 and bool(names) and len(shared) > len(alone)
        yield Problem(
            "a folder that the job needs is not mounted",
            expected=f"{need.path} from {usual[0]}, as on {fold(shared)}",
            actual=f"a folder of the host itself, with {_entries(found)}",
            subject=need.path,
            hosts=(host,),
            severity=Severity.FAIL if certain else None,
            confidence=Confidence.CERTAIN if certain else Confidence.SUSPECT,
            evidence=(Evidence("mount", f"{found.source} on {found.mount}"),),
            commands=(f"sudo mount {quote(first.mount)}",),
        )


def _unlike(
    need: FolderNeed, sides: Mapping[str, tuple[str, str]], there: Mapping[str, Folder]
) -> Iterator[Problem]:
    """Hosts whose folder has other names, if servers are known: from another one, too."""
    known = {host: side for host, side in sides.items() if side[1]}
    servers, names = ({side[at] for side in known.values()} for at in (0, 1))
    all_sizes = {there[host].total for host in known}
    one_server = servers != {""} and (len(servers) < 2 or (len(all_sizes) == 1 and None not in all_sizes))
    if len(names) < 2 or one_server:
        return
    votes, tie = votes_of(known)
    sizes = {there[host].total for host in votes[0][1]} - {None}
    for (source, _), hosts in votes if tie else votes[1:]:
        first = there[hosts[0]]
        if source and not tie and first.total in sizes:
            continue  # one server under two names, and its names changed meanwhile
        yield Problem(
            "a folder that the job needs has other entries than on the other hosts",
            expected=f"{need.path} as on {fold(votes[0][1])}: {_entries(there[votes[0][1][0]])}",
            actual=_entries(first) + (f", from {source}" if source else ""),
            subject=need.path,
            hosts=hosts,
            confidence=Confidence.SUSPECT if tie else Confidence.STRONG,
            evidence=(Evidence("mount", f"{first.source} on {first.mount}"),),
            commands=(f"ls -A {quote(need.path)} | sort | cksum",),
        )


def _entries(found: Folder) -> str:
    if found.names == MANY:
        return f"over {MOST_NAMES:,} entries"
    if found.entries is None:
        return "entries that could not be listed"
    return f"{found.entries} {'entry' if found.entries == 1 else 'entries'}"


READ_SECONDS, FIND_SECONDS, LEAST = 3, 2, 64
"""How long a file is read, and looked for; how large it must be, in MB, so that its start does not count."""
# Not through the cache, if the file system allows that. Through it, it can only be faster.
_READ = rf"""n=0 l='
'
for p; do
  n=$((n + 1))
  {{
    f=$(timeout {FIND_SECONDS} find "$p/" -maxdepth 3 -type f -size +{LEAST * 1000}k | head -n 1)
    [ -n "$f" ] || exit 0
    for d in iflag=direct ibs=4194304; do
      o=$(timeout -s INT -k 1 {READ_SECONDS} dd if="$f" of=/dev/null bs=4194304 count=128 $d 2>&1)
      o=${{o##*"$l"}}
      case $o in [1-9]*copied*) break; esac
    done
    echo "read $n $o"
  }} 2>/dev/null 5>&- &
done | timeout {FIND_SECONDS + 2 * READ_SECONDS + 1} cat || :
"""


def _ask_reads(ask: Ask) -> str:
    return f"set -- {join(ask.read)}\n{_READ}" if ask.read else ""


def _reads(capture: Capture) -> Mapping[int, float]:
    form = r"^read (\d{1,3}) (\d{1,15}) bytes.{0,60} copied, ([\d.e-]{1,20}) s"
    found = re.findall(form, capture.stdout, re.MULTILINE)
    took = {int(number): (int(size) / 1e6, _seconds(seconds)) for number, size, seconds in found}
    return {n: size / seconds for n, (size, seconds) in took.items() if seconds > 0 and (size or seconds > 1)}


def _seconds(text: str) -> float:
    return float(text) if re.fullmatch(r"\d{1,9}(\.\d{1,9})?(e-\d\d)?", text) else 0


FOLDER_READS: Fact[Mapping[int, float]] = Fact(
    "folder-reads", Run(_ask_reads), _reads, timeout=FIND_SECONDS + 2 * READ_SECONDS + 2, slow=True
)
"""MB/s, by the place in the list of the folders that must be read at some rate, from 1."""


@check("folder-slow", PLAN, maybe(FOLDER_READS), damage=Damage.LOAD)
def folder_slow(plan: JobPlan, reads: Mapping[int, float] | None) -> Iterator[Problem]:
    """A folder that the job needs is read more slowly than it must be.

    Why it matters: devices wait for their data. One host that reads slowly makes all others wait in every
    step.

    How it is known: if `--needs PATH:RATE` names a rate, such as `/data:500MB/s`, one file of 64 MB or more
    in the folder, or two folders below it, is read for at most 3 seconds, not from the cache if the file
    system allows that. All hosts read at the same time, as the ranks of the job do.

    What to do: look for whoever else reads there, and at the link to the server. A server that gives one host
    the rate, and not all of them at once, is too slow for the job.
    """
    needs = [need for need in plan.needs if need.rate]
    if not needs:
        raise Skip("no folder was named with a rate (--needs PATH:RATE)")
    unread = []
    for number, need in enumerate(needs, 1):
        rate = (reads or {}).get(number)
        if rate is None:
            unread.append(need.path)
        elif rate < need.rate:
            yield Problem(
                "a folder that the job needs is read too slowly",
                expected=f"{need.rate} MB/s",
                actual=f"{rate:.3g} MB/s",
                subject=need.path,
                evidence=(Evidence(f"dd if={need.path}/… of=/dev/null", f"{rate:.3g} MB/s"),),
                commands=(f"df -h {quote(need.path)}", "grep nfs /proc/mounts"),
            )
    if unread:
        raise Undecided(f"no file of {LEAST} MB or more could be read in {fold(unread)}")
