"""Many trials of `doctor hang` on real jobs of torchrun, mpirun and srun, on the lab's hosts."""

BEFORE = -1
"""The step before a job's first collective."""
