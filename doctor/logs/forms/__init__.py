"""Finds out what a line is, who wrote it, and when.

Nothing here knows a symptom. A line of unknown form is plain; a field that the line does not state is empty.
"""
