"""What is settled stays, whatever is decoded later."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from voicechart.adapters.local.agreement import Agreement, DecodedWord

VOCABULARY = ["what", "What", "time", "time,", "is", "it", "it?", "30.", "o'clock", "—"]


def decoded(sentence: str, word_s: float = 0.3) -> tuple[DecodedWord, ...]:
    return tuple(
        DecodedWord(f" {word}", index * word_s, (index + 1) * word_s, 0.9)
        for index, word in enumerate(sentence.split())
    )


def test_three_decodes_settle_what_they_share_up_to_the_edge_of_the_audio() -> None:
    agreement = Agreement(edge_s=0.5)
    agreement.update(decoded("what time"), 1.0)
    assert agreement.update(decoded("what time is it"), 1.6).stable_chars == 0
    settled = agreement.update(decoded("what time is it now"), 1.6)
    assert settled.text == "what time is it now"
    assert settled.text[: settled.stable_chars] == "what time"


def test_two_decodes_settle_nothing() -> None:
    agreement = Agreement()
    agreement.update(decoded("what time"), 9.0)
    assert agreement.update(decoded("what time"), 9.0).stable_chars == 0


def test_punctuation_after_the_last_settled_word_may_still_change() -> None:
    agreement = Agreement(edge_s=0.0)
    for sentence in ("so, it", "so it", "so. It is"):
        settled = agreement.update(decoded(sentence), 9.0)
    assert settled.text == "so. It is"
    assert settled.text[: settled.stable_chars] == "so. It"


def test_a_later_contradiction_only_continues_what_is_settled() -> None:
    agreement = Agreement(edge_s=0.0)
    for _ in range(3):
        agreement.update(decoded("strike thirty"), 9.0)
    settled = agreement.update(decoded("strike thirteen times"), 9.0)
    assert settled.text == "strike thirty times"


def test_an_empty_decode_keeps_what_is_settled_and_drops_the_rest() -> None:
    agreement = Agreement(edge_s=0.0)
    for sentence in ("one", "one", "one two"):
        agreement.update(decoded(sentence), 9.0)
    assert agreement.update((), 9.0).text == "one"


def test_nothing_settled_and_nothing_decoded_is_no_text() -> None:
    agreement = Agreement()
    agreement.update(decoded("noise"), 1.0)
    assert agreement.update((), 1.0).text == ""


@given(st.lists(st.lists(st.sampled_from(VOCABULARY), max_size=6), min_size=1, max_size=12), st.floats(0, 2))
def test_the_settled_prefix_never_changes_and_never_shrinks(decodes: list[list[str]], edge_s: float) -> None:
    agreement = Agreement(edge_s=edge_s)
    stable = ""
    for words in decodes:
        settled = agreement.update(decoded(" ".join(words)), 2.0)
        assert settled.text.startswith(stable)
        assert len(stable) <= settled.stable_chars <= len(settled.text)
        stable = settled.text[: settled.stable_chars]


@given(st.lists(st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=6), min_size=1, max_size=6))
def test_without_a_settled_prefix_the_text_is_the_newest_decode(decodes: list[list[str]]) -> None:
    agreement = Agreement(edge_s=1_000.0)
    for words in decodes:
        assert agreement.update(decoded(" ".join(words)), 2.0).text == " ".join(words)
