"""Who is examined: host names from node sets, hostfiles, inventories, rank tables and Slurm."""
