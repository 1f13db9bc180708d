"""The code that runs on the hosts: sent as text, standard library only, Python 3.6 and later.

It only reads: it writes no file, traces no process and sends signals only to its own processes.
"""
