"""The daemon: one microphone, one speaker, one foreground conversation, from a configuration to its orderly end."""

from .running import DaemonOutcome, run_daemon

__all__ = ["DaemonOutcome", "run_daemon"]
