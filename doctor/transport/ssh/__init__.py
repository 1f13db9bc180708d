"""Hosts reached over SSH. Only this folder imports paramiko."""
