"""Runs pytest on a folder, or says which package is missing and skips (exit status 77). Packages may lie in the build folder, where
scripts/test.sh puts them."""
import importlib.util
import os
import sys

packages = os.path.join(os.environ["WEFT_LLVM_FOLDER"], "python-packages")
if os.path.isdir(packages):
    sys.path.append(packages)
    os.environ["PYTHONPATH"] += os.pathsep + packages  # of processes that tests start
missing = [name for name in ("pytest", "numpy") if not importlib.util.find_spec(name)]
if missing:
    print(f"skipped: the Python tests need {' and '.join(missing)} (pip install {' '.join(missing)})")
    sys.exit(77)
import pytest

sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[1:]]))
