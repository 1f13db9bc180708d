#!/bin/bash
# doctor on every host of a job of PBS or LSF, without SSH: one rank of --in-job on each.
#
#     doctor_in_job.sh preflight || exit 1
#
# pbs_tmrsh and blaunch run a command on a host of the job that calls them. PBS writes what it prints into the
# output of the job. With ~/.config/cluster-doctor/job-key, no process of another user can pass for a rank.
file=${PBS_NODEFILE:-${LSB_DJOB_HOSTFILE:?this is not a job of PBS or LSF}}
launch=${LAUNCH:-$([[ ${PBS_NODEFILE-} ]] && echo pbs_tmrsh || echo blaunch)}
mapfile -t hosts < <(awk '!seen[$1]++ { print $1 }' "$file")
job=(WORLD_SIZE=${#hosts[@]} MASTER_ADDR="${hosts[0]}" MASTER_PORT=$((30000 + RANDOM % 2000)))
for rank in "${!hosts[@]}"; do
    "$launch" "${hosts[rank]}" env "${job[@]}" RANK="$rank" "${DOCTOR:-doctor}" "$@" --in-job </dev/null &
    ranks[rank]=$!
done
trap 'kill "${ranks[@]}"' INT TERM
wait "${ranks[0]}" # all ranks end with the same code
