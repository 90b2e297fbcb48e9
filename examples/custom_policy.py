"""A policy of your own: the user must say the magic word to interrupt, or speak for two seconds."""

from __future__ import annotations

from dataclasses import dataclass

from voicechart.statecharts import Evidence, InterruptionPolicy, Judgement, Verdict


@dataclass(frozen=True, slots=True)
class MagicWordPolicy(InterruptionPolicy):
    """Everything else is as the policy it extends says; `judge` must stay pure."""

    magic_word: str = "enough"
    patience_ms: int = 2_000

    def judge(self, evidence: Evidence) -> Judgement:
        judgement = InterruptionPolicy.judge(self, evidence)
        asked_for = self.magic_word in evidence.text.lower() or evidence.speech_ms >= self.patience_ms
        if judgement.verdict is Verdict.ACCEPTED and evidence.text and not asked_for:
            return Judgement(Verdict.UNDECIDED, "magic_word_missing")
        return judgement
