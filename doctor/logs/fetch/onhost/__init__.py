"""Finds and reads logs on a host. It is sent there as text: standard library only, Python 3.6 and later."""
