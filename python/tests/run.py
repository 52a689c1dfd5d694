"""Runs pytest on a folder, or says which package is missing and skips (exit status 77)."""
import importlib.util
import sys

missing = [name for name in ("pytest", "numpy") if not importlib.util.find_spec(name)]
if missing:
    print(f"skipped: the Python tests need {' and '.join(missing)} (pip install {' '.join(missing)})")
    sys.exit(77)
import pytest

sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[1:]]))
