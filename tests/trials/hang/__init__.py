"""Many trials of `doctor hang` on real jobs of torchrun over the lab's hosts."""
