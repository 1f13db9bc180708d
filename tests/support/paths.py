"""The path of the repository."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REFUSALS = ROOT / "doctor/transport/containers/refusals.txt"
