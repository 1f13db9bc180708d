"""The job that hangs right now: which rank everybody waits for, where, and why."""
