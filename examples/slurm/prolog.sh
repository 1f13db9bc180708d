#!/bin/sh
# Prolog= in slurm.conf: runs as root on each node before a job starts there. An exit code other than 0 drains the
# node and requeues the job, so only a fault of the node, never a problem of doctor, may give one.
# It examines one host without the network, and ignores what Slurm says about the job in SLURM_*.
PATH=/opt/cluster-doctor/bin:/usr/sbin:/usr/bin:/sbin:/bin
timeout 20 doctor check --local --mesh none --timeout 5 -q
[ $? -ne 1 ] || exit 1
exit 0
