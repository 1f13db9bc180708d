"""`doctor hang`: which rank a hanging job waits for, where, and why."""
