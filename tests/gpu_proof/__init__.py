"""What one machine with NVIDIA GPUs can prove about the examination and the smoke run: one recording, one
page.

    python -m tests.gpu_proof --python /opt/train/bin/python --out gpu-proof.md

Nothing is emulated: if there is no GPU, or no torch that uses it, it says so and writes nothing.
"""
