"""A small, strict interpreter of POSIX sh in a simulated world, for reading guards back.

It understands the subset that a guard needs and refuses everything else, so what it says about a line is what dash and bash do.
"""

from ahp_compile.shell.interpreter import OWN_WORDS, Ending, Program, Result, run
from ahp_compile.shell.syntax import ShellUnsupported

__all__ = ["OWN_WORDS", "Ending", "Program", "Result", "ShellUnsupported", "run"]
