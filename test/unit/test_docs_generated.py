"""The documents that are drawn from the code are current."""

from __future__ import annotations

from pathlib import Path
import subprocess
import sys

SCRIPT = Path(__file__).resolve().parents[2] / 'scripts' / 'lib' / 'generated.py'


def test_generated_parts_of_the_documents_are_current() -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), '--check'], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
