"""What an installed package says of itself."""
import os
import pathlib
import subprocess
import sys

import weft


def run(folder, *args):
    env = dict(os.environ, PYTHONPATH=str(folder))
    return subprocess.run([sys.executable, *args], env=env, cwd=folder, capture_output=True, text=True)


def test_other_software_of_the_name(tmp_path):
    (tmp_path / "weft").symlink_to(pathlib.Path(weft.__file__).parent)
    quiet = run(tmp_path, "-c", "import weft")
    assert quiet.returncode == 0 and not quiet.stderr
    (tmp_path / "weft-1.0.dist-info").mkdir()
    said = run(tmp_path, "-c", "import weft")
    assert said.returncode == 0 and "weft-1.0.dist-info: other software that is called weft" in said.stderr


def test_command(tmp_path):
    """The command of the package, or a sentence where the package was built without it."""
    (tmp_path / "weft").symlink_to(pathlib.Path(weft.__file__).parent)
    p = run(tmp_path, "-m", "weft", "--version")
    if (pathlib.Path(weft.include) / "weft").exists():
        assert p.stdout == f"weft {weft.__version__}\n" and run(tmp_path, "-m", "weft", "nothing").returncode == 2
        assert sys.executable in run(tmp_path, "-m", "weft", "doctor").stdout
    else:
        assert p.returncode == 1 and "this package has no command" in p.stderr
