"""How well the rules tell finished utterances from unfinished ones.

    python benchmarks/end_of_turn.py            a table for people
    python benchmarks/end_of_turn.py --json     one object

The list is `end_of_turn.tsv`: utterances as a recogniser without punctuation writes them, labelled by hand. The rules
were written with the "seen" ones in view; the "unseen" ones were written after them, and no rule was changed for
their sake. "Finished" is what is looked for: precision says how many of the turns that are called finished are, recall
how many finished ones are answered quickly. The trivial baseline calls everything finished, as voice activity does.
"""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from voicechart.adapters.local.end_of_turn import probability_of_end

LIST = Path(__file__).with_name("end_of_turn.tsv")


@dataclass(frozen=True, slots=True)
class Utterance:
    """One row of the list."""

    language: str
    finished: bool
    text: str
    seen: bool


def utterances() -> list[Utterance]:
    """The whole list."""
    with LIST.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return [Utterance(row["language"], row["label"] == "complete", row["text"], row["set"] == "seen") for row in rows]


def measured(judge: Callable[[str], bool], chosen: Sequence[Utterance]) -> dict[str, float | int]:
    """Figures of a judge on these utterances."""
    judged = [(utterance.finished, judge(utterance.text)) for utterance in chosen]
    right = sum(1 for finished, found in judged if finished and found)
    called, really = sum(found for _, found in judged), sum(finished for finished, _ in judged)
    return {
        "utterances": len(judged),
        "precision": round(right / called, 3) if called else 0.0,
        "recall": round(right / really, 3) if really else 0.0,
        "accuracy": round(sum(finished == found for finished, found in judged) / len(judged), 3),
    }


def parts() -> dict[str, list[Utterance]]:
    """The list, whole and cut in different ways."""
    every = utterances()
    return {
        "en": [utterance for utterance in every if utterance.language == "en"],
        "zh": [utterance for utterance in every if utterance.language == "zh"],
        "seen": [utterance for utterance in every if utterance.seen],
        "unseen": [utterance for utterance in every if not utterance.seen],
        "all": every,
    }


def rules(text: str) -> bool:
    """The shipped judge."""
    return probability_of_end(text) >= 0.5


def everything(_: str) -> bool:
    """The trivial baseline."""
    return True


def mean_us() -> float:
    """Microseconds of processor time a judgement."""
    texts = [utterance.text for utterance in utterances()]
    began = time.process_time_ns()
    for text in texts:
        rules(text)
    return round((time.process_time_ns() - began) / len(texts) / 1_000, 1)


def main(as_json: Annotated[bool, typer.Option("--json")] = False) -> None:
    found = {
        name: {part: measured(judge, chosen) for part, chosen in parts().items()}
        for name, judge in (("rules", rules), ("baseline", everything))
    }
    wrong = [utterance.text for utterance in utterances() if rules(utterance.text) is not utterance.finished]
    if as_json:
        typer.echo(json.dumps({**found, "mean_us": mean_us(), "wrong": wrong}, ensure_ascii=False, indent=2))
        return
    for name, languages in found.items():
        for part, figures in languages.items():
            typer.echo(f"{name:<9} {part:<7} " + "  ".join(f"{key} {value}" for key, value in figures.items()))
    typer.echo(f"{mean_us()} µs a judgement; wrong: {', '.join(wrong) or 'none'}")


if __name__ == "__main__":
    typer.run(main)
