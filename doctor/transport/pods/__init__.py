"""Pods, found by label or by their job, and entered through the API server of their cluster, in this process.

Needs the package `kubernetes`; without it, `kubectl` lists and enters the same pods.
"""
