#!/bin/sh
# Prolog= and Epilog= in slurm.conf: runs as root on each node before a job starts there, or after it has ended. An exit
# code other than 0 drains the node (and, as Prolog, requeues the job), so only a certain fault of the node may give one:
# never a job, never a warning, never a problem of doctor.
PATH=/opt/cluster-doctor/bin:/usr/sbin:/usr/bin:/sbin:/bin
timeout 60 doctor check --local --exam node -q
[ $? -ne 1 ] || exit 1
exit 0
