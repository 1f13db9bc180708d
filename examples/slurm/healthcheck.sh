#!/bin/sh
# HealthCheckProgram= in slurm.conf, with HealthCheckNodeState=ANY: a node on which runs in a row find a certain fault is
# drained, and `sinfo -R` shows the reason. Once runs in a row find it sound the node is resumed, if it was doctor that drained
# it. A node that has another reason is somebody else's, and left alone. A job that runs there changes nothing: it goes on, and
# so does the check. A run that could not decide counts for nothing.
#
# A line of the kernel's log is forgotten after a day, whether somebody repaired the node or not: who is drained for one is
# resumed by a person.
PATH=/opt/cluster-doctor/bin:/usr/sbin:/usr/bin:/sbin:/bin
fail_after=2
clear_after=3
row=/run/cluster-doctor.row # what the last runs found, and how many of them in a row; gone when the node is started again
node=${SLURMD_NODENAME:-$(hostname -s)}
said=$(LC_ALL=C timeout 60 doctor check --local --exam node -q --no-color 2>/dev/null)
code=$?
why=$(printf '%s\n' "$said" | sed -n 's/^FAIL  *//p' | head -n 3 | tr -s ' \n' ' ' | cut -c 1-120)
case $code${why:+ fault} in
  '1 fault') now=fault enough=$fail_after ;;
  0) now=sound enough=$clear_after ;;
  *) exit 0 ;;
esac
{ read -r before number <"$row"; } 2>/dev/null
case $before-$number in
  "$now"-[0-9] | "$now"-[0-9][0-9]) ;;
  *) number=0 ;;
esac
[ "$number" -ge 99 ] || number=$((number + 1))
{ echo "$now $number" >"$row"; } 2>/dev/null || number=$enough # what cannot be counted is not waited for
[ "$number" -ge "$enough" ] || exit 0
reason=$(scontrol show node "$node" | sed -n 's/^ *Reason=//p' | head -n 1)
case $now,$reason in
  fault,) scontrol update nodename="$node" state=drain reason="doctor: $why" ;;
  sound,*gpu-xid* | sound,*amd-reset* | sound,*memory-errors*) ;;
  sound,"doctor: "*) scontrol update nodename="$node" state=resume ;;
esac
exit 0
