"""Hosts reached through one `srun` inside a Slurm allocation."""
