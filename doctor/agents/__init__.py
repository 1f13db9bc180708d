"""Agents: programs of ours that run on hosts while the controller speaks with them, one on each host.

`bootstrap` ships a program, `session` is the conversation with all of its copies: leases, messages, noise.
What an agent does and says belongs to the mesh and to the smoke run; `onhost` is what their programs share.
"""
