"""The words in which charts are declared: `State`, `Compound` and `Parallel` of python-statemachine, with types.

The library builds states from class bodies through a metaclass, which a type checker cannot follow. Here is what a
declaration may use of it, and nothing else: a transition line names its event, its guards and its actions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    Names = str | Sequence[str]

    class State:
        """An atomic state. `initial`: entered with its parent."""

        def __init__(self, name: str = "", *, initial: bool = False) -> None: ...

        def to(
            self,
            target: State | type[Compound] | None,
            *,
            event: str,
            cond: Names = (),
            unless: Names = (),
            before: Names = (),
            on: Names = (),
        ) -> None:
            """A transition from here; `target` None stays here. `event` may name several, separated by spaces."""

        def from_(
            self,
            *sources: State | type[Compound],
            event: str,
            cond: Names = (),
            unless: Names = (),
            before: Names = (),
            on: Names = (),
        ) -> None:
            """One transition from each of `sources` to here."""

    class Compound:
        """A state with states inside, of which one is active."""

        def __init_subclass__(cls, name: str = "") -> None: ...

        @classmethod
        def to(
            cls,
            target: State | type[Compound] | None,
            *,
            event: str,
            cond: Names = (),
            unless: Names = (),
            before: Names = (),
            on: Names = (),
        ) -> None:
            """As `State.to`, from whichever state inside is active."""

        @classmethod
        def from_(
            cls,
            *sources: State | type[Compound],
            event: str,
            cond: Names = (),
            unless: Names = (),
            before: Names = (),
            on: Names = (),
        ) -> None:
            """As `State.from_`; the initial state inside is entered."""

    class Parallel:
        """A state whose children, its regions, are all active."""

        def __init_subclass__(cls, name: str = "") -> None: ...

else:
    from statemachine import State

    Compound = State.Compound
    Parallel = State.Parallel

__all__ = ["Compound", "Parallel", "State"]
