"""The parts of the terminal report, one per module."""
