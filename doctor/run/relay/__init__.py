"""The program between doctor and the command: it starts it, copies its output, and passes signals on.

Standard library only. It outlives doctor, and ends when the command and its output have ended.
"""
