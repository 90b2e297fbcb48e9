"""Whether an English utterance sounds finished, by its last words."""

from __future__ import annotations

import re

FINISHED, LIKELY, UNFINISHED = 0.9, 0.75, 0.1

_WORDS = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")


def _listed(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ALWAYS_OPEN = _listed(
    # conjunctions and openers of clauses
    "and but or nor because although though unless until whether while whereas if as than since plus except "
    # articles, possessives, quantifiers
    "the a an my your its our their every each another some any several which whose "
    # adverbs that need something behind them
    "very quite really rather almost nearly about approximately maybe perhaps "
    # prepositions that are never left alone
    "from into onto between among during toward towards against without within per via by beside behind "
    # fillers
    "um uh er erm hmm well like actually basically "
    # subjects
    "i he she we they there "
    # what needs a verb or an object
    "to of let gonna wanna favorite favourite looking wondering thinking"
)
_STRANDED = _listed("from of about to with for at in by like into on")
"""May stand last in a question: "where are you from"."""

_AUXILIARIES = _listed(
    "is are was were am be been do does did has have had can could will would should might must may "
    "isn't aren't wasn't don't doesn't didn't can't couldn't won't wouldn't shouldn't i'm i've i'll it's that's"
)
_PARTICLES = _listed("on off in out up down over away back around through")
_PHRASAL = _listed(
    "turn switch put carry go come log sign hang wake shut pick calm slow speed hold move keep sit stand get take "
    "bring give set look run"
)
_ALONE = _listed("go come carry hang log sign wake shut calm slow hold move keep sit stand get")
"""With a particle they need no object: "go on"."""

_QUESTIONS = _listed("what where who why how when which whose whom")
_GIVING = _listed("tell give show remind send bring get buy let make teach read pass")
_OBJECTS = _listed("me him us them")
_CLAUSES = _listed("if because although unless while whenever once as since before after when until")
_OPENINGS = (
    "you know",
    "i mean",
    "let me see",
    "let me think",
    "first of all",
    "for example",
    "the thing is",
    "kind of",
    "sort of",
)
_NUMBERS = _listed(
    "zero oh one two three four five six seven eight nine ten eleven twelve fifteen twenty thirty forty fifty sixty "
    "hundred thousand"
)
_DICTATED = _listed("number code pin phone zip")
_MIN_DICTATED = 4
_COUNTED = _listed("about are for in every after least most")
_ANSWERS = _listed("yes no yeah nope sure course so neither")
_THINKING = _listed("say says said think thought know knew hope believe is was so mean sure thinking")
_SHORT_CLAUSE = 7


def english_probability(text: str) -> float:
    """0 to 1: how likely nothing more comes."""
    words = _WORDS.findall(text.lower().replace("’", "'"))
    if not words:
        return UNFINISHED
    last, before = words[-1], words[:-1]
    joined = " ".join(words)
    if any(joined.endswith(opening) for opening in _OPENINGS) or _counts_on(words):
        return UNFINISHED
    if last in _PARTICLES and _is_phrasal(before):
        return FINISHED
    asks = any(word in _QUESTIONS for word in before)
    if last in _STRANDED and asks and len(words) > 3 and words[0] in _QUESTIONS:
        return LIKELY
    if last in _AUXILIARIES:
        return _after_auxiliary(words, asks=asks)
    if last in _ALWAYS_OPEN or last in _PARTICLES or last in _STRANDED:
        return UNFINISHED
    if last == "that" and before and before[-1] in _THINKING:
        return UNFINISHED
    if last in _OBJECTS and before and before[-1] in _GIVING and len(words) <= 4:
        return UNFINISHED
    if last == "please":
        return UNFINISHED if before and before[-1] == "you" else FINISHED
    if last == "not" or (last in ("only", "most", "more") and before and before[-1] in ("not", "the")):
        return UNFINISHED if len(words) > 2 else LIKELY
    if _is_lone_clause(words):
        return UNFINISHED
    return FINISHED if words[0] in _QUESTIONS or len(words) <= 2 else LIKELY


def _is_phrasal(before: list[str]) -> bool:
    """`before` ends in what a particle completes: a verb that stands alone, or a verb and its object."""
    if not before:
        return False
    if before[-1] in _PHRASAL:
        return before[-1] in _ALONE
    return any(word in _PHRASAL for word in before[:-1])


def _after_auxiliary(words: list[str], *, asks: bool) -> float:
    """Finished are "yes i do" and "who he is", unlike "what is" and "the thing is"."""
    if words[0] in _ANSWERS and len(words) > 1:
        return FINISHED
    return LIKELY if asks and len(words) > 2 and words[-2] not in _QUESTIONS else UNFINISHED


def _counts_on(words: list[str]) -> bool:
    """A number that something must follow: digits being dictated, or a quantity without its unit."""
    trailing = 0
    for word in reversed(words):
        if not (word in _NUMBERS or word.isdigit()):
            break
        trailing += len(word) if word.isdigit() else 1
    if not trailing:
        return words[-1] == "point" and len(words) > 1 and (words[-2] in _NUMBERS or words[-2].isdigit())
    if any(word in _DICTATED for word in words):
        return trailing < _MIN_DICTATED
    rest = [word for word in words if word not in _NUMBERS and not word.isdigit()]
    return bool(rest) and rest[-1] in _COUNTED and not any(word in ("alarm", "table") for word in rest)


def _is_lone_clause(words: list[str]) -> bool:
    """It begins as a clause that depends on another, and is too short to hold both."""
    first = words[0]
    if first not in _CLAUSES or len(words) > _SHORT_CLAUSE or len(words) < 2:
        return False
    # "when is the next train" asks.
    return not (first == "when" and (words[1] in _AUXILIARIES))
