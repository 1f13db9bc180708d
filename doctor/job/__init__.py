"""The job that the cluster is examined for: its plan, its launch, its rank table, its parallel layout."""
