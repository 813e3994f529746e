"""Claude Code: JSON settings, command hooks run by /bin/sh."""

from ahp_compile.target import Target
from ahp_targets.claude_code.codec import CODEC
from ahp_targets.claude_code.emit import emit
from ahp_targets.claude_code.engine import ENGINE
from ahp_targets.claude_code.lift import lift

TARGET = Target(
    name="claude-code",
    interface=1,
    engine=ENGINE,
    emit=emit,
    lift=lift,
    codec=CODEC,
    env_source="the environment that `claude` is started with; a settings file's `env` member overrides it",
)
