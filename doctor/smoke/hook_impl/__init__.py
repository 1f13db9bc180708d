"""What the hook loads at its first call, inside people's jobs: Python 3.8 and later, no torch of its own."""
