#!/bin/sh
# A custom plugin of node-problem-detector, which runs on the node itself: 0 is no fault, 1 a certain one, 2 unknown. The
# words become the message of the node's condition.
PATH=/opt/cluster-doctor/bin:/usr/sbin:/usr/bin:/sbin:/bin
said=$(LC_ALL=C timeout 50 doctor check --local --exam node -q --no-color 2>&1)
code=$?
why=$(printf '%s\n' "$said" | sed -n 's/^FAIL  *//p' | head -n 3 | tr -s ' \n' ' ')
printf '%s\n' "${why:-$(printf '%s\n' "$said" | tail -n 1)}"
case $code${why:+ fault} in 0*) exit 0 ;; '1 fault') exit 1 ;; *) exit 2 ;; esac
