"""The public test kit of the conversation chart: scripted conversations on a virtual clock.

A script tells the chart facts in short sentences and reads what was decided, what a speaker that obeys would have let
be heard, and what reached the record. Nothing here sleeps, and nothing needs a test framework.
"""

from .clockwork import HANDS_FREE, scripted_error
from .ear import Ear
from .reached import Reached
from .record import Record
from .script import ScriptedConversation

__all__ = ["HANDS_FREE", "Ear", "Reached", "Record", "ScriptedConversation", "scripted_error"]
