"""Jobs of frameworks, each with a fault that FAULT, VICTIM and AT choose."""
