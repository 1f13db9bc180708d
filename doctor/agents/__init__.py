"""Agents: programs of ours that run on hosts while the controller speaks with them, one on each host.

`bootstrap` sends a program, `session` is the conversation with all of its copies: leases, messages, noise.
The mesh and the smoke run define what their agents do and say; `onhost` is what those programs share.
"""
