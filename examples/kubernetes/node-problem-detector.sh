#!/bin/sh
# A custom plugin of node-problem-detector: 0 is no fault, 1 a certain one, 2 unknown. The words become the message of the
# node's condition. It examines the node itself, also if node-problem-detector runs in a pod: that pod needs hostPID: true,
# privileged: true, this folder as a hostPath, and limits that have room for doctor (512Mi, one CPU).
# Tried on a host, sick and sound, but not under node-problem-detector itself.
PATH=/opt/cluster-doctor/bin:/usr/sbin:/usr/bin:/sbin:/bin
node=
if [ "$(readlink /proc/1/ns/mnt)" != "$(readlink /proc/self/ns/mnt)" ]; then
  node='nsenter --target=1 --mount --net --uts --'
elif [ -n "$KUBERNETES_SERVICE_HOST" ]; then
  echo 'the node was not examined: the pod of node-problem-detector needs hostPID: true'
  exit 2
fi
said=$(LC_ALL=C $node timeout 50 doctor check --local --exam node -q --no-color 2>&1)
code=$?
why=$(printf '%s\n' "$said" | sed -n 's/^FAIL  *//p' | head -n 3 | tr -s ' \n' ' ')
printf '%s\n' "${why:-$(printf '%s\n' "$said" | tail -n 1)}"
case $code${why:+ fault} in 0*) exit 0 ;; '1 fault') exit 1 ;; *) exit 2 ;; esac
