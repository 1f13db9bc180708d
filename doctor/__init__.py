"""cluster-doctor: which host, device, port or rank is at fault, how it is known, and what to type."""

__version__ = "0.1.0"
