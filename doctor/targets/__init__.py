"""The hosts to examine: from node sets, hostfiles, inventories, rank tables and Slurm."""
