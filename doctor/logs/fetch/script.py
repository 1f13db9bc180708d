"""The script that a host runs: it finds the logs and prints them, packed. POSIX sh; it writes nothing.

Each file is a frame headed by a random token, so that nothing in a log passes for a frame. A file that is
longer than its limit is cut at its beginning: what ends a job stands at the end.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from doctor.probe.frames import FRAME
from doctor.probe.shell import PRELUDE
from doctor.transport import Script

MEGABYTE = 1_000_000
USUAL = (
    "~/ascend/log",
    "~/slurm-*.out",
    "~/log*",
    "~/*.log",
    "/tmp/torchelastic_*",
    "/tmp/none_*/attempt_*",
    "/var/log/messages",
    "/var/log/syslog",
    "/var/log/kern.log",
)
"""Where jobs log when nobody says where."""
BESIDE = ("log*", "*.log", "slurm-*.out", "output*/log*", "outputs/*.log", "msrun_log*")
"""In the folder of a job, or in that where doctor is called: often the same folder on all hosts."""
MOST_FILES = 5000
DEPTH = 8
KERNEL_LINES = 5000
KERNEL = "kernel-log"
"""The name of what `dmesg` says."""


@dataclass(frozen=True, slots=True)
class Wanted:
    paths: tuple[str, ...] = ()
    """Globs; none: the usual places."""
    minutes: int | None = None
    """Only files that were written in this time."""
    a_file: int = 8 * MEGABYTE
    a_host: int = 64 * MEGABYTE
    folders: tuple[str, ...] = ()
    """Of the job: what lies beside its program."""

    def globs(self) -> tuple[str, ...]:
        if self.paths:
            return self.paths
        beside = (f"{folder.rstrip('/')}/{name}" for folder in self.folders for name in BESIDE)
        return tuple(dict.fromkeys((*beside, *USUAL)))


_SHELL = r"""
x() { printf '\n%s x %s: %s\n' "$T" "$1" "$2"; }
take() { # a file
  [ -f "$1" ] || return 0
  if ! [ -r "$1" ]; then
    [ -n "$R" ] && $R test -r "$1" 2>/dev/null || { x "$1" 'may not be read by this user'; return 0; }
    r=$R
  else r=; fi
  s=$($r wc -c "$1" 2>/dev/null); s=${s#"${s%%[0-9]*}"}; s=${s%% *}
  [ "${s:-0}" -gt 0 ] || return 0
  c=$s; [ "$c" -le "$F" ] || c=$F
  [ "$c" -le "$L" ] || { x "$1" 'over the limit of the host (--limit)'; return 0; }
  L=$((L-c))
  if [ "$c" -lt "$s" ]; then
    x "$1" "only the last $c of its $s bytes (--limit); its line numbers count from there"
    printf '\n%s f %s\n' "$T" "$1"; $r tail -c "$c" "$1"
  else printf '\n%s f %s\n' "$T" "$1"; $r head -c "$c" "$1"; fi
}
found() { # patterns: without a blank between words, only names of files come of them
  IFS=
  for p; do
    case $p in '~/'*) p=$HOME/${p#??} ;; esac
    for f in $p; do
      [ ! -e "$f" ] || find -H "$f" -type f $M 2>/dev/null
    done
  done
}
kernel() {
  k=$( { dmesg --time-format iso || $R dmesg --time-format iso || $R dmesg; } 2>/dev/null | tail -n "$K")
  [ -z "$k" ] || printf '\n%s f %s\n%s\n' "$T" "$1" "$k"
}
all() {
  { found "$@" | awk '!s[$0]++' | head -n "$N" | while IFS= read -r f; do take "$f"; done; }
  [ -z "$D" ] || kernel "$D"
  printf '\n%s z\n' "$T"
}
pack() {
  if command -v gzip >/dev/null 2>&1 && command -v base64 >/dev/null 2>&1; then
    printf '\n%s packed\n' "$T"; gzip -c | base64
  else printf '\n%s plain\n' "$T"; cat; fi
}
""".strip("\n")


def fetch_script(wanted: Wanted, token: str, *, sudo: bool = False) -> Script:
    """The patterns are words to the shell, and only names of files come of them."""
    find = f"-mmin -{wanted.minutes}" if wanted.minutes is not None else ""
    lines = [
        "{",
        f"T={token[:FRAME]}",
        PRELUDE,
        f"F={wanted.a_file} L={wanted.a_host} N={MOST_FILES} K={KERNEL_LINES}",
        f"D={KERNEL if not wanted.paths else ''}",
        "R=; " + ('[ "$U" = 0 ] || R="sudo -n"' if sudo else ":"),
        _SHELL.replace("$M", find).replace("-type f", f"-maxdepth {DEPTH} -type f"),
        f"{{ all {shlex.join(_rooted(wanted.globs()))} | pack; }} 2>/dev/null",
        "{ kill $W; wait $W; } 2>/dev/null",
        f"printf '\\n%s done\\n' {token}",
        "exit 0; }",
        "",
    ]
    return Script("exec sh -s", "\n".join(lines).encode(), f"{token} done".encode())


def _rooted(globs: Sequence[str]) -> tuple[str, ...]:
    """A pattern that begins with "-" is no option: what is relative lies in the folder of the login."""
    return tuple(each if each.startswith(("/", "~/")) else f"./{each}" for each in globs)
