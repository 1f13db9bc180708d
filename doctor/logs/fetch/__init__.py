"""Fetches logs from the hosts of a job, within limits, with one program that leaves nothing behind.

onhost   the program that a host runs: it finds files safely and prints them packed
script   the request to a host
unpack   a host's answer -> files in a folder here, and what was left out
private  this folder, which is removed when the run ends
"""
