"""Teaches the agent of `doctor hang` to look often. Sent to the hosts as text: standard library only, Python
3.6 and later.
"""
