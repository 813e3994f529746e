"""Hermes Agent: YAML configuration that enables an in-process plugin."""

from ahp_compile.target import Target
from ahp_targets.hermes.codec import CODEC
from ahp_targets.hermes.emit import emit
from ahp_targets.hermes.engine import ENGINE
from ahp_targets.hermes.lift import lift

TARGET = Target(
    name="hermes",
    interface=1,
    engine=ENGINE,
    emit=emit,
    lift=lift,
    codec=CODEC,
    env_source="the environment that `hermes` is started with; `$HERMES_HOME/.env` overrides it",
)
