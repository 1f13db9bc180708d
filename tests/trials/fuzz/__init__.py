"""Inputs that nobody meant: whatever is read, the answer is a report or one of our own errors."""
