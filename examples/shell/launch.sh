#!/bin/bash
# Starts a training on the hosts of a hostfile with only ssh and a shell: one process per rank, whose environment
# says which rank it is. The hosts are examined first; as many healthy hosts train as are needed.
#
#   HOSTFILE=hosts.txt NEED=3 ./launch.sh train.py --epochs 3
#
# HOSTFILE  the hosts, one per line                      (hosts.txt)
# NEED      how many hosts are needed                    (all)
# PYTHON    the interpreter that has torch on the hosts  (python3)
# RUNS      keeps the whole report of each run           (runs)
# LOGS      keeps the output of each host                (logs)
# BACKEND   what the ranks talk over: nccl, hccl or gloo (nccl)
# DOCTOR    more options of doctor preflight             (none; for example: --steps 10)
# SSH       how to log in                                (ssh -o BatchMode=yes)
set -u
if [ $# = 0 ]; then
  echo "usage: HOSTFILE=hosts.txt NEED=3 $0 SCRIPT.py [ARGUMENT...]" >&2
  exit 2
fi
hosts=${HOSTFILE:-hosts.txt} python=${PYTHON:-python3} runs=${RUNS:-runs} logs=${LOGS:-logs}
read -ra ssh <<<"${SSH:-ssh -o BatchMode=yes}"
read -ra more <<<"${NEED:+--need-hosts $NEED} ${DOCTOR:-}"

# On a no-go this prints nothing on stdout, and stderr says what is wrong and where.
job=$(doctor preflight -F "$hosts" --backend "${BACKEND:-nccl}" --python "$python" -q --print launch=env \
  --report-dir "$runs" "${more[@]}") || exit
eval "$job" # MASTER_ADDR MASTER_PORT NNODES WORLD_SIZE NPROC_PER_NODE HOSTS
: "${NPROC_PER_NODE:?hosts have different numbers of ranks}"

# Runs on each host: its ranks in parallel. If one fails, or ssh ends, all of them end. It is in single quotes.
# shellcheck disable=SC2016
on_host='
cd "$1" || exit
exec 4<&0
(cat <&4 >/dev/null 2>&1; kill -TERM 0) & ssh=$!
for ((local = 0; local < $3; local++)); do
  RANK=$(($2 + local)) LOCAL_RANK=$local "${@:4}" 4<&- & ranks[local]=$!
done
failed() { kill "$ssh" "${ranks[@]}"; exit 1; }
for rank in "${ranks[@]}"; do
  wait -n "${ranks[@]}"
  case $? in 0 | 127) ;; *) failed ;; esac # 127: this bash no longer knows the one that ended; it is asked below
done 2>/dev/null
for rank in "${ranks[@]}"; do wait "$rank" || failed; done 2>/dev/null
kill "$ssh"'

# The stdin of every ssh: nothing is ever written to it, and it stays open as long as this script runs.
idle=$(mktemp -u) && mkfifo -m 600 "$idle" && exec 3<>"$idle" && rm "$idle" || exit
mkdir -p "$logs" || exit
trap 'kill "${started[@]}" 2>/dev/null' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

started=() first=0
for host in $HOSTS; do
  told="MASTER_ADDR=$MASTER_ADDR MASTER_PORT=$MASTER_PORT WORLD_SIZE=$WORLD_SIZE LOCAL_WORLD_SIZE=$NPROC_PER_NODE"
  words=$(printf ' %q' "$PWD" "$first" "$NPROC_PER_NODE" "$python" -u "$@")
  "${ssh[@]}" "$host" "env $told bash -c '$on_host' ranks$words" <&3 >"$logs/$host.log" 2>&1 &
  started+=($!)
  first=$((first + NPROC_PER_NODE))
done
failed() { echo "$0: a rank failed; see $logs" >&2; exit 1; }
for host in $HOSTS; do
  wait -n "${started[@]}" 2>/dev/null
  case $? in 0 | 127) ;; *) failed ;; esac # as above
done
for host in "${started[@]}"; do wait "$host" 2>/dev/null || failed; done
