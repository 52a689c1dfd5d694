"""The command: `weft` in an environment that has the package, and `python -m weft`. The program beside this file takes the
place of Python."""
import os
import sys


def main():
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "weft")
    if not os.path.exists(program):
        sys.exit("weft: this package has no command: it was not installed from a wheel; build/weft is the command of a checkout")
    os.environ.setdefault("WEFT_PYTHON", sys.executable)
    os.execv(program, ["weft", *sys.argv[1:]])


if __name__ == "__main__":
    main()
