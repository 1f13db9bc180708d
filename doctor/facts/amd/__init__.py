"""AMD GPUs, as amd-smi, rocm-smi and the kernel's ROCm driver show them."""
