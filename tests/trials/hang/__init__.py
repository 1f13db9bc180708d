"""Many trials of `doctor hang` on real jobs of torchrun, mpirun and srun over the lab's hosts."""
