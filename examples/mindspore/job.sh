#!/bin/bash
# Trains train.py with MindSpore on this host: four ranks under msrun, after a preflight of the same four.
#
#   ./job.sh                the ranks of a replica draw the same mask
#   ./job.sh --wrong-seed   each rank draws its own: the hook says so
set -eu
cd "$(dirname "$0")"

# On a no-go nothing is started: three lines on stderr say what is wrong, and the script ends with doctor's exit code.
# With NPUs: --backend hccl.
doctor preflight --local --backend gloo --ranks-per-host 4 --launch job.sh --python "$(command -v python)" -q || exit

here=$(mktemp -d) # on several hosts: a new directory that all of them see
trap 'rm -rf "$here"' EXIT
mkdir "$here/hook"
export DOCTOR_HOOK_DIR=$here/hook

# The hook as one file: the Python that trains need not have cluster-doctor.
"$(dirname "$(readlink -f "$(command -v doctor)")")/python" -m doctor.smoke.hook "$here/hook.zip" >&2
export PYTHONPATH=$here/hook.zip${PYTHONPATH:+:$PYTHONPATH}

msrun --worker_num=4 --local_worker_num=4 --master_addr=127.0.0.1 --master_port=18118 --join=True \
  --log_dir=logs train.py "$@"
