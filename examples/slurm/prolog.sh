#!/bin/sh
# Prolog= and Epilog= in slurm.conf: runs as root on each node before a job starts there, or after it has ended. An exit
# code other than 0 drains the node (and, as Prolog, requeues the job), so only a certain fault of the node may give one:
# never a job, never a warning, never a problem of doctor. So a fault must be printed, too: a Python that cannot start
# also ends with 1.
PATH=/opt/cluster-doctor/bin:/usr/sbin:/usr/bin:/sbin:/bin
said=$(LC_ALL=C timeout 60 doctor check --local --exam node -q --no-color)
code=$?
[ -z "$said" ] || printf '%s\n' "$said"
if [ $code -eq 1 ] && printf '%s\n' "$said" | grep -q '^FAIL '; then exit 1; fi
exit 0
