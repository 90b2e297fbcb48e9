"""The `voicechart` command in processes of its own, with real signals: for tests from end to end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

RUN = "from voicechart.adapters.cli import app; app(prog_name='voicechart')"
PROMPTLY_S = 60.0
"""On a busy machine too; whoever needs it all has failed."""
LOOK_EVERY_S = 0.02


class CommandStuck(AssertionError):
    """It did not do what was waited for. The text holds what it said."""


@dataclass
class RunningCommand:
    """A command that is at work."""

    process: subprocess.Popen[str]
    errors: Path
    """Its stderr."""
    output: Path
    """Its stdout."""

    def wait_for_error(self, part: str) -> None:
        """Return when its stderr holds `part`. Raises `CommandStuck`."""
        self._wait_for(self.errors, part)

    def wait_for_output(self, part: str) -> None:
        """Return when its stdout holds `part`. Raises `CommandStuck`."""
        self._wait_for(self.output, part)

    def stop(self, number: signal.Signals) -> int:
        """Send a signal; the exit code once it has ended."""
        self.process.send_signal(number)
        return self.ended()

    def ended(self) -> int:
        """The exit code once it has ended. Raises `CommandStuck`."""
        try:
            return self.process.wait(PROMPTLY_S)
        except subprocess.TimeoutExpired:
            raise CommandStuck(f"it does not end: {self.errors.read_text()}") from None

    def _wait_for(self, file: Path, part: str) -> None:
        give_up_at = time.monotonic() + PROMPTLY_S
        while part not in file.read_text():
            if self.process.poll() is not None or time.monotonic() > give_up_at:
                raise CommandStuck(f"{part!r} did not come: {self.errors.read_text()}")
            time.sleep(LOOK_EVERY_S)


@dataclass
class VoicechartCommand:
    """Runs the command in `folder`, which is its working directory and holds its temporary files."""

    folder: Path
    started: list[RunningCommand] = field(default_factory=list[RunningCommand])

    def run(
        self, *arguments: str | Path, before: str = "", timeout_s: float = PROMPTLY_S
    ) -> subprocess.CompletedProcess[str]:
        """Run it to its end. `before`: Python that its process runs first."""
        return subprocess.run(
            _command(before, arguments),
            cwd=self.folder,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
        )

    def start(self, *arguments: str | Path, before: str = "") -> RunningCommand:
        """Start it and return. `before`: Python that its process runs first."""
        name = f"{len(self.started)}-{arguments[0]}"
        errors, output = self.folder / f"{name}.err", self.folder / f"{name}.out"
        with errors.open("w") as error_file, output.open("w") as output_file:
            process = subprocess.Popen(
                _command(before, arguments),
                cwd=self.folder,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=output_file,
                stderr=error_file,
                text=True,
            )
        self.started.append(RunningCommand(process, errors, output))
        return self.started[-1]

    def kill_all(self) -> None:
        """End what is still at work."""
        for running in self.started:
            if running.process.poll() is None:
                running.process.kill()
                running.process.wait()

    @property
    def left_behind(self) -> list[str]:
        """What is left in its temporary folder."""
        return sorted(path.name for path in self._temporary.iterdir())

    @property
    def _temporary(self) -> Path:
        return self.folder / "tmp"

    def _environment(self) -> dict[str, str]:
        self._temporary.mkdir(exist_ok=True)
        shown = {"PYTHONUNBUFFERED": "1", "COLUMNS": "200", "NO_COLOR": "1"}
        return {**os.environ, **shown, "TMPDIR": str(self._temporary)}


def _command(before: str, arguments: tuple[str | Path, ...]) -> list[str]:
    return [sys.executable, "-W", "error", "-c", f"{before}\n{RUN}", *(str(argument) for argument in arguments)]
