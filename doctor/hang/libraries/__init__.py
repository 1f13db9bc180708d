"""Reads what libraries and device tools said, and makes opinions of it. Pure: asks nobody."""
