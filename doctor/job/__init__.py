"""The job for which the cluster is examined: its plan, launch, rank table and parallel layout."""
