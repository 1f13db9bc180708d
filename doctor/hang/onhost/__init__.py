"""What runs on the hosts: standard library only, Python 3.6 and later, sent as text.

It only reads, writes no file, traces nothing and sends no signal to a process that is not its own.
"""
