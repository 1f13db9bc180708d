"""Fetches logs from the hosts of a job, within limits, with one program that leaves nothing behind."""
