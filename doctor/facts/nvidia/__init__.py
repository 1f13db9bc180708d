"""What is known of NVIDIA devices, from nvidia-smi and the kernel log."""
