"""`voicechart attach`: a conversation that is served elsewhere, in this terminal."""

from __future__ import annotations

from typing import Annotated

import typer

from .output import interruptible


def attach(
    url: Annotated[str, typer.Argument(metavar="URL", help="What serve or the daemon printed: http://127.0.0.1:8420")],
    conversation: Annotated[
        str | None, typer.Option("--conversation", metavar="NAME", help="Another one than that in the foreground.")
    ] = None,
    after: Annotated[
        str | None, typer.Option("--after", metavar="CURSOR", help="Begin behind this cursor, epoch:sequence.")
    ] = None,
    token_env: Annotated[
        str | None, typer.Option("--token-env", metavar="NAME", help="The environment variable that holds the token.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print every event as one line of JSON.")] = False,
) -> None:
    """Show the events of a conversation: what is understood, written and heard, and what is interrupted.

    A lost connection is found again, behind the last event that came, and that is said on stderr. The end of the
    conversation ends with 0, Ctrl-C with 130, a server that refuses with 1.
    """

    def run() -> None:
        from .attach_run import Wish, run_and_report

        run_and_report(Wish(url, conversation, after, token_env, as_json))

    interruptible(run)
