"""Trials of whole scenes: work that is no hang, frameworks, jobs at their start, and hosts that fail."""
