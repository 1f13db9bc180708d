"""Logs of the hosts that a job ran on, within limits: one program that leaves nothing there.

onhost   what a host runs: it finds files that nobody else chose, and prints them packed
script   what a host is asked for
unpack   a host's answer -> files in a folder here, and what was left out
private  that folder, for as long as the run lives
"""
