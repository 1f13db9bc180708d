"""Logs of the hosts that a job ran on, within limits: one script that leaves nothing there.

script   what a host runs: files as frames, packed, on its stdout
unpack   a host's answer -> files in a private folder here, and what was left out
"""
