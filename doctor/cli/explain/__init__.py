"""`doctor explain` and `doctor logs`."""
