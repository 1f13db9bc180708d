"""A report as one page that needs nothing else: no network, no script, no font."""
