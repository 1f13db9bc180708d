"""The hosts that start the job, and the line that starts it."""
