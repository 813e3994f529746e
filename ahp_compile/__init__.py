"""Compile one Agent Hooks Protocol registration into native hook configuration, proven equivalent or refused."""

__version__ = "0.1.0"
