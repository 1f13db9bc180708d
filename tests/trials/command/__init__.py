"""Trials of `doctor run`: a training with a drawn fault, started with it on this machine."""
