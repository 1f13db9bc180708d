#!/bin/sh
# HealthCheckProgram= in slurm.conf, with HealthCheckNodeState=ANY: a node with a certain fault is drained, and `sinfo -R`
# shows the reason. Once the fault is gone the node is resumed, if it was doctor that drained it. A node that has another
# reason is somebody else's, and left alone. A job that runs there changes nothing: it goes on, and so does the check.
#
# A line of the kernel's log is forgotten after a day, whether somebody repaired the node or not: who is drained for one is
# resumed by a person.
PATH=/opt/cluster-doctor/bin:/usr/sbin:/usr/bin:/sbin:/bin
node=${SLURMD_NODENAME:-$(hostname -s)}
said=$(LC_ALL=C timeout 60 doctor check --local --exam node -q --no-color 2>/dev/null)
code=$?
reason=$(scontrol show node "$node" | sed -n 's/^ *Reason=//p' | head -n 1)
why=$(printf '%s\n' "$said" | sed -n 's/^FAIL  *//p' | head -n 3 | tr -s ' \n' ' ' | cut -c 1-120)
case $code in
  1)
    if [ -z "$reason" ] && [ -n "$why" ]; then
      scontrol update nodename="$node" state=drain reason="doctor: $why"
    fi
    ;;
  0)
    case $reason in
      *gpu-xid* | *amd-reset* | *memory-errors*) ;;
      "doctor: "*) scontrol update nodename="$node" state=resume ;;
    esac
    ;;
esac
exit 0
