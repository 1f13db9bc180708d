"""Hosts reached over SSH. paramiko is imported in this folder and nowhere else."""
