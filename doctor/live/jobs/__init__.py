"""Which processes are one job, and what is known of it."""
