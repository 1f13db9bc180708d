"""Agents: our programs that run on the hosts, one on each, while the controller talks to them.

`bootstrap` sends a program; `session` is the conversation with all of its copies: leases, messages, noise.
The mesh, the smoke run and `hang` define what their agents do and report; `onhost` is the code they share.
"""
