"""Ends what a daemon left behind: it reads which process groups live, and kills them when the daemon is gone.

A daemon that is killed cannot end its backends itself. Its end of this process's standard input closes with it.
"""

import os
import signal
import sys


def main() -> None:
    """Lines are ``+PID`` for a group that was started and ``-PID`` for one that was ended."""
    groups: set[int] = set()
    for line in sys.stdin:
        (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
    for group in groups:
        try:
            os.killpg(group, signal.SIGKILL)
        except OSError:
            continue


if __name__ == "__main__":
    main()
