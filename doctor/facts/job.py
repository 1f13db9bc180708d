"""The user's own training processes that run now, and what every rank is told.

Only the variables that matter to a job leave a host, of processes of the user who asks, and no others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from doctor.api import Capture, Fact, Given, JobPlan, NotUnderstood, Run
from doctor.facts.network import Names
from doctor.facts.system import Identity
from doctor.launch import (
    Crew,
    Directory,
    JobProcess,
    Launch,
    Told,
    as_address,
)
from doctor.launch.command import read_command
from doctor.launch.crew import remark
from doctor.launch.extent import is_larger, spans_hosts
from doctor.launch.numbers import doubled_ranks, impossible_ranks, no_node_rank, node_ranks
from doctor.launch.options import NOT_GIVEN
from doctor.launch.ranks import Absent, counted, missing_ranks, world_of_launch
from doctor.launch.roles import wrong_roles
from doctor.launch.seatdevices import against_table, devices_beyond, shared_devices
from doctor.launch.seats import (
    Master,
    is_loopback_name,
    launcher,
    local_world_of,
    master_of,
    node_rank_of,
    nodes_of,
    rank_of,
    role_of,
    shared_options,
    world_of,
)
from doctor.launch.variables import KEPT, ONLY_PRESENCE, is_kept, kept, kept_words, must_agree

__all__ = [
    "LAUNCHES",
    "NOT_GIVEN",
    "ONLY_PRESENCE",
    "PROCESSES_OF_JOBS",
    "Absent",
    "Crew",
    "Directory",
    "JobProcess",
    "Launch",
    "Master",
    "Told",
    "against_table",
    "as_address",
    "counted",
    "devices_beyond",
    "directory",
    "doubled_ranks",
    "impossible_ranks",
    "is_larger",
    "is_loopback_name",
    "launcher",
    "local_world_of",
    "master_of",
    "missing_ranks",
    "must_agree",
    "no_node_rank",
    "node_rank_of",
    "node_ranks",
    "nodes_of",
    "rank_of",
    "remark",
    "role_of",
    "shared_devices",
    "shared_options",
    "spans_hosts",
    "world_of",
    "world_of_launch",
    "wrong_roles",
]

MOST = 300
"""Processes of one host. Helpers that a rank has started do not count."""
CANDIDATES = 4000
CAP = 2_000_000
_NUMBERED = (
    *("RANK", "RANK_ID", "MS_ROLE", "MS_NODE_ID", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "PMI_RANK"),
    *("SLURM_PROCID", "LOCAL_RANK", "GROUP_RANK", "TORCHELASTIC_RUN_ID"),
)
"""Equal in a rank and in the helpers that it has started, such as loaders of data."""
_BY_LAUNCHERS = {"LOCAL_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "PMI_RANK"}
_TOOLS = re.compile(r"ipykernel\w*|jupyter[\w-]*|tensorboard|pip[\d.]*|http\.server|debugpy|pylsp|wandb\S*")
_STARTERS = (
    "torchrun|torch_npu_run|msrun|mpirun|mpiexec|mpiexec.hydra|orterun|prterun|srun|deepspeed|accelerate"
)
_SIGNS = (
    "^(RANK|RANK_ID|RANK_TABLE_FILE|MS_ROLE|MS_SCHED_HOST|MASTER_ADDR|OMPI_COMM_WORLD_RANK"
    "|MV2_COMM_WORLD_RANK|PMI_RANK|SLURM_PROCID)="
    f"|^(.*/)?({_STARTERS})$|^(torch|torch_npu)\\.distributed\\.(run|launch)$|^deepspeed\\.launcher\\."
)
_WRAPPERS = (
    "sh|bash|dash|ash|zsh|ksh|csh|tcsh|fish|busybox|timeout|nohup|time|env|sudo|su|tini|dumb-init|docker-init"
    "|script|screen|strace|nsys|ncu|sshd.*|login|slurm_script|tmux.*|grep|awk|tr"
)

_AWK = """
{ slash = index($0, "/"); p = substr($0, 1, slash - 1); r = substr($0, slash + 1)
  colon = index(r, ":"); k = substr(r, 1, colon - 1); v = substr(r, colon + 1) }
k == "stat" { sub(/^.*\\) /, "", v); split(v, s, " "); up[p] = s[2]; session[p] = s[4]; next }
k == "cmdline" { if (!(p in name)) { name[p] = v; sub(/^.*\\//, "", name[p]); sub(/^-/, "", name[p]) }
  gsub(/\\t/, " ", v); if (length(line[p]) < 4000) line[p] = line[p] "\\t" substr(v, 1, 300); next }
k == "environ" { e = index(v, "="); who[p, substr(v, 1, e - 1)] = substr(v, e)
  if (length(env[p]) < 16000) env[p] = env[p] "e " substr(v, 1, 400) "\\n" }
function numbered(p, i) { for (i = 1; i <= count; i++) if (who[p, keys[i]] != "") return 1
  return 0 }
function same(p, q, i) { for (i = 1; i <= count; i++) if (who[p, keys[i]] != who[q, keys[i]]) return 0
  return 1 }
function above(p, q, n) { q = up[p]
  for (n = 0; n < 50 && (q in name); n++) { if (name[q] !~ wrapper) return q; q = up[q] }
  return "" }
END { count = split(numbers, keys, " ")
  for (p in name) if (name[p] !~ wrapper && (own == 0 || session[p] != own) && name[p] != "") {
    q = above(p); spawned = line[p] ~ /multiprocessing/
    if (q != "" && same(p, q) && (numbered(p) || spawned || line[p] == line[q])) {
      if (line[p] ~ /multiprocessing.spawn/) spawns[q] = 1 }
    else kept[p] = 1 }
  for (p in kept) { if (++n > most) { print "more"; exit }
    print "p " p " " up[p] " " (p in spawns) "\\n" env[p] "a" line[p] } }
"""

_LOOK = f"""
for c in grep awk tr; do command -v $c >/dev/null || exit 127; done
cd /proc || exit
read -r _ _ _ _ _ own _ </proc/self/stat
l=$(grep -lsazE '{_SIGNS}' [0-9]*/environ [0-9]*/cmdline 2>&1)
case $l in ''|[0-9]*) z=z;; *) z= l=$(echo [0-9]*/cmdline);; esac
echo jobs
seen=' ' e= c= s= n=0
for f in $l; do
  p=${{f%/*}}
  [ -O $p ] || continue
  case $f in */cmdline) case $seen in *" $p "*) continue;; esac;; esac
  [ "$z" ] || {{ x=; read -r x <$p/cmdline; [ "$x" ] || continue; }} 2>/dev/null
  seen="$seen$p " e="$e $p/environ" c="$c $p/cmdline" s="$s $p/stat" n=$((n+1))
  [ $n -lt {CANDIDATES} ] || {{ echo more; exit 0; }}
done
[ "$e" ] || exit 0
if [ "$z" ]; then
  say() {{ grep -Hsaz '' $c; grep -HsazE '^({KEPT})=' $e; }}
else
  say() {{
    for f in $c $e; do tr '\\0\\n' '\\n\\001' <$f | sed "s|^|$f:|"; done |
    grep -E '^[0-9]+/(cmdline:|environ:({KEPT})=)' | tr '\\n' '\\0'
  }}
fi
{{ grep -Hsa . $s; say 2>/dev/null | tr '\\0\\n' '\\n\\001'; }} |
awk -v own="${{own:-0}}" -v most={MOST} -v numbers='{" ".join(_NUMBERED)}' -v wrapper='^({_WRAPPERS})$' \\
  '{_AWK}'
"""


def _jobs(capture: Capture) -> tuple[JobProcess, ...]:
    """`p PID PARENT SPAWNS`, then a line for each variable, then the words of the command line."""
    if not capture.stdout.startswith("jobs"):
        raise NotUnderstood("the list of processes has no head")
    if re.search(r"^more$", capture.stdout, re.MULTILINE):
        raise NotUnderstood(f"there are more than {MOST} processes of jobs")
    found = []
    for part in re.split(r"^p ", capture.stdout, flags=re.MULTILINE)[1:]:
        head, *rows = part.split("\n")
        numbers = re.fullmatch(r"(\d{1,10}) (\d{1,10}) ([01])", head)
        if not numbers:
            raise NotUnderstood("a process has no number")
        pairs = (row[2:].partition("=") for row in rows if row.startswith("e "))
        env = {name: value.replace("\x01", "\n") for name, equals, value in pairs if equals and is_kept(name)}
        words = next((row[2:].split("\t") for row in rows if row.startswith("a\t")), [])
        process = JobProcess(
            int(numbers[1]), int(numbers[2]), kept(env), kept_words(words), spawns=numbers[3] == "1"
        )
        if _of_a_job(process):
            found.append(process)
    return tuple(sorted(found, key=lambda process: process.pid))


def _of_a_job(process: JobProcess) -> bool:
    """A rank, a launcher, or a program that starts ranks itself; not whatever inherited a variable.

    Pods and shells hand RANK and MASTER_ADDR to all that is started in them: a viewer, a notebook.
    """
    words, env = process.command, process.env
    if not words or not words[0] or _is_doctor(words):
        return False
    command = read_command(words)
    if command is not None and command.way is not None:
        return bool(command.program)
    size = env.get("SLURM_STEP_NUM_TASKS", "")
    started = re.fullmatch(r"\d{1,9}", size) is not None and int(size) > 1 and "SLURM_PROCID" in env
    if command is None:
        return started or bool(env.keys() & _BY_LAUNCHERS)
    if _TOOLS.fullmatch(command.program) or (
        command.program == "-c" and "multiprocessing" in " ".join(words)
    ):
        return False
    numbered = any(name in env for name in _NUMBERED[:7])
    return numbered or started or ("MASTER_ADDR" in env and process.spawns)


def _is_doctor(words: tuple[str, ...]) -> bool:
    names = [word.rpartition("/")[2] for word in words[:3]]
    return "doctor" in names[:2] or words[1:3] == ("-m", "doctor")


PROCESSES_OF_JOBS: Fact[tuple[JobProcess, ...]] = Fact(
    "job-processes", Run(_LOOK), _jobs, timeout=6, slow=True, cap=CAP
)

LAUNCHES: Given[tuple[Launch, ...]] = Given("launches")
"""What ranks will be told, by the launch's files and the inventory, and what those that run were told."""


def directory(
    plan: JobPlan,
    addresses: Mapping[str, Mapping[str, tuple[str, ...]]],
    names: Mapping[str, Names],
    identities: Mapping[str, Identity],
) -> Directory:
    """Who is called what, and whose an address is."""
    called = {
        host.name: frozenset(
            text.lower()
            for text in (host.given, identities[host.name].hostname if host.name in identities else "")
            if text
        )
        for host in plan.hosts
    }
    held = {
        host: frozenset(as_address(a) or a for found in interfaces.values() for a in found)
        | frozenset(a for a in (as_address(plan.data_address(host) or ""),) if a)
        for host, interfaces in addresses.items()
        if host in plan.names
    }
    return Directory(
        tuple(host.name for host in plan.hosts),
        called,
        held,
        {host: seen.addresses for host, seen in names.items()},
    )
