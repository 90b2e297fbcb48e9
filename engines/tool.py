"""What a tool is: a typed function that the model may call, and what has to be known of it before it runs."""

from __future__ import annotations

import inspect
import json
import re
import unicodedata
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, get_type_hints

from pydantic import BaseModel, TypeAdapter

from .hold_lines import HoldLines
from .ports import ToolDefinition
from .tool_arguments import ArgumentsForm, ModelForm

MAX_OUTPUT_CHARS = 16_384
"""What a tool says beyond this is cut; a model's context is not a file store."""
CUT = " … (cut)"
MAX_ERROR_CHARS = 1_024
MAX_DESCRIPTION_CHARS = 4_096

_NAME = re.compile(r"^[A-Za-z0-9_-]{1,64}$")
"""What every provider takes as a name."""
_ANYTHING: TypeAdapter[Any] = TypeAdapter(Any)


class SideEffects(StrEnum):
    """What a second run of a call would do."""

    NONE = "none"
    """It only looks."""
    IDEMPOTENT = "idempotent"
    """It changes something, and doing so again changes nothing more."""
    YES = "yes"
    """Nobody may run it twice: where it is not known whether it ran, the outcome is `unknown`."""


class ToolError(Exception):
    """A tool failed in a way the model should hear about. The text goes to the model.

    `effect_unknown`: nobody can tell whether its side effect happened.
    """

    def __init__(self, text: str, *, effect_unknown: bool = False) -> None:
        super().__init__(text)
        self.effect_unknown = effect_unknown


class ToolRefused(ValueError):
    """A declaration that cannot be offered to a model; the text says what to change."""


@dataclass(frozen=True)
class Tool:
    """`arguments` validates the call before it runs; `run` gets what it makes of them and returns what the model sees.

    What `run` returns is shown as it is when it is a text, otherwise as JSON. It is called once a call, in a task of
    its own, and cancelled there; it must not block the thread. Raises `ToolRefused` for what no provider would take.
    """

    name: str
    description: str
    arguments: type[BaseModel] | ArgumentsForm
    run: Callable[[Any], Awaitable[object]]
    background: bool = False
    """The call ends when the task is queued; the task outlives the reply, an interruption, and a restart."""
    side_effects: SideEffects = SideEffects.YES
    timeout_ms: int | None = None
    """Of the running tool. A call in the foreground ends at the policy's `tool_ms` at the latest."""
    approve: Callable[[Any], Awaitable[bool]] | None = None
    """Asked with the valid arguments before the call may run; may ask a person, for ten seconds at most."""
    hold: HoldLines | None = None
    """What is said while it runs; the general lines without any, nothing with empty ones."""
    resumable: bool = False
    """A background task that was running when the process ended begins again. Only without `SideEffects.YES`."""
    announce: Callable[[str], str] | None = None
    """From the result of a finished background task to the words that may tell the user of it."""
    form: ArgumentsForm = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check what does not depend on a call."""
        if not _NAME.match(self.name):
            raise ToolRefused(
                f"the name {self.name[:80]!r} has other than letters, digits, '_' and '-', or more than 64"
            )
        if len(self.description) > MAX_DESCRIPTION_CHARS:
            raise ToolRefused(f"{self.name}: the description is longer than {MAX_DESCRIPTION_CHARS} characters")
        if self.timeout_ms is not None and self.timeout_ms < 1:
            raise ToolRefused(f"{self.name}: timeout_ms must be at least 1")
        if self.resumable and (self.side_effects is SideEffects.YES or not self.background):
            raise ToolRefused(f"{self.name}: only a background tool that may run twice can be resumable")
        form = self.arguments if isinstance(self.arguments, ArgumentsForm) else ModelForm(self.arguments)
        object.__setattr__(self, "form", form)

    @property
    def has_side_effects(self) -> bool:
        """A second run would do harm."""
        return self.side_effects is SideEffects.YES

    def definition(self) -> ToolDefinition:
        """What the model is told."""
        return ToolDefinition(self.name, self.description, json.dumps(self.form.json_schema()))


def tool(
    run: Callable[[Any], Awaitable[object]],
    *,
    name: str | None = None,
    description: str | None = None,
    background: bool = False,
    side_effects: SideEffects = SideEffects.YES,
    timeout_ms: int | None = None,
    approve: Callable[[Any], Awaitable[bool]] | None = None,
    hold: HoldLines | None = None,
    resumable: bool = False,
    announce: Callable[[str], str] | None = None,
) -> Tool:
    """The tool that an async function of one pydantic model is: its name, its docstring, its parameter's type.

    Raises `ToolRefused` when the function has no such parameter or no docstring.
    """
    own_name = getattr(run, "__name__", type(run).__name__)
    hints = get_type_hints(run)
    parameters = list(inspect.signature(run).parameters)
    model = hints.get(parameters[0]) if len(parameters) == 1 else None
    if not isinstance(model, type) or not issubclass(model, BaseModel):
        raise ToolRefused(f"{own_name}: a tool is a function of one parameter whose type is a pydantic model")
    if not inspect.iscoroutinefunction(run):
        raise ToolRefused(f"{own_name}: a tool is an async function; run what blocks in a thread")
    told = description if description is not None else inspect.getdoc(run)
    if not told:
        raise ToolRefused(f"{own_name}: a tool needs a docstring, or a description: the model chooses by it")
    return Tool(
        name or own_name,
        told,
        model,
        run,
        background,
        side_effects,
        timeout_ms,
        approve,
        hold,
        resumable,
        announce,
    )


def as_text(result: object) -> str:
    """What the model sees of a result, bounded. Raises `ToolError` for what has no form in JSON."""
    if not isinstance(result, str):
        try:
            result = _ANYTHING.dump_json(result).decode()
        except (ValueError, RecursionError):
            # It ran: whatever it does has happened.
            raise ToolError("the tool ran, but what it returned cannot be written down") from None
    return cleaned(result, MAX_OUTPUT_CHARS)


def cleaned(text: str, limit: int = MAX_ERROR_CHARS) -> str:
    """Without control characters and half characters, and no longer than `limit`."""
    if len(text) > limit:
        text = text[: limit - len(CUT)] + CUT
    return "".join(mark for mark in text if mark in "\n\t" or unicodedata.category(mark) not in ("Cc", "Cs"))
