"""The run time: what the emitted hooks call."""
