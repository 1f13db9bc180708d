#!/bin/sh
# HealthCheckProgram= in slurm.conf, with HealthCheckNodeState=ANY: a node with a certain fault is drained, and `sinfo -R`
# shows the reason. Once the fault is gone the node is resumed, if it was doctor that drained it. A job that runs there
# changes nothing: it goes on, and so does the check.
PATH=/opt/cluster-doctor/bin:/usr/sbin:/usr/bin:/sbin:/bin
node=${SLURMD_NODENAME:-$(hostname -s)}
said=$(timeout 60 doctor check --local --exam node -q --no-color 2>/dev/null)
code=$?
ours=$(scontrol show node "$node" | sed -n 's/^ *Reason=doctor: .*/yes/p')
if [ $code -eq 1 ] && [ -z "$ours" ]; then
  why=$(printf '%s\n' "$said" | sed -n 's/^FAIL  *//p' | head -n 3 | tr -s ' \n' ' ' | cut -c 1-120)
  scontrol update nodename="$node" state=drain reason="doctor: ${why:-a fault}"
elif [ $code -eq 0 ] && [ -n "$ours" ]; then
  scontrol update nodename="$node" state=resume
fi
exit 0
