"""Malformed inputs: whatever is read, the answer is a report or one of our own errors."""
