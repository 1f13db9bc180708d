"""Facts about NVIDIA devices, from nvidia-smi and the kernel log."""
