"""Limits of tests are processor time: a busy machine changes nothing. Time that passes ends only what waits for ever."""
import resource
import signal
import subprocess

WAITS = 20  # a command may wait so many times its processor time


def run(command, seconds, **options):
    """subprocess.run() of a command that may take so many seconds of processor time; more is subprocess.TimeoutExpired."""
    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    p = subprocess.run(command, timeout=WAITS * seconds, preexec_fn=limit, **options)
    if p.returncode == -signal.SIGXCPU:
        raise subprocess.TimeoutExpired(command, seconds, p.stdout, p.stderr)
    return p
