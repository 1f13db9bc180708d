"""Judging shared by several check files: pure functions from facts to problems."""
