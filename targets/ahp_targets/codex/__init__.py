"""Codex CLI: TOML configuration, command hooks run by bash, behind a trust hash."""

from ahp_compile.target import Target
from ahp_targets.codex.codec import CODEC
from ahp_targets.codex.emit import emit
from ahp_targets.codex.engine import ENGINE
from ahp_targets.codex.lift import lift

TARGET = Target(
    name="codex",
    interface=1,
    engine=ENGINE,
    emit=emit,
    lift=lift,
    codec=CODEC,
    env_source="the environment that `codex` is started with; `$CODEX_HOME/.env` overrides it",
)
