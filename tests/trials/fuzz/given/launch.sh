#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=8
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
MASTER_PORT=${PORT:-$((29500 + SLURM_JOB_ID % 100))}
cd "$(dirname "$0")" && source ./env.sh
for i in {0..7}; do
  if [ "$i" -lt 4 ]; then
    export ASCEND_RT_VISIBLE_DEVICES=$i RANK_ID=$i
  fi
  case $i in 0|1) LOG=a;; *) LOG=b;; esac
  mpirun -np 16 -H node1:8,node2:8 -x MASTER_ADDR --mca btl tcp \
    bash -c "python train.py --tp 2 > $LOG/$i.log 2>&1" &
done
start() { torchrun --nnodes=2 --node_rank="$1" --nproc-per-node 8 --rdzv-endpoint node1:$MASTER_PORT t.py; }
start 0; srun --mpi=pmix python -m torch.distributed.run --standalone --nproc_per_node=gpu train.py
msrun --worker_num=16 --local_worker_num=8 --master_addr=node1 --join=True train.py <<EOF
no words
EOF
wait
