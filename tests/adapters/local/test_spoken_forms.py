"""Numbers in words: what is written, and how it is said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicechart.adapters.local.spoken_forms import SpokenForms


@pytest.fixture(scope="module")
def say() -> SpokenForms:
    pytest.importorskip("num2words", reason="needs the extra `local`")
    return SpokenForms()


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("It costs $3.50.", "It costs three dollars and fifty cents."),
        ("$1", "one dollar"),
        ("£2.01 and €5", "two pounds and one penny and five euros"),
        ("$2.5 million", "two point five million dollars"),
        ("$1,200", "one thousand, two hundred dollars"),
        ("at 10:30", "at ten thirty"),
        ("at 7:05 pm", "at seven oh five P M"),
        ("at 9:00", "at nine o'clock"),
        ("on 2026-11-30", "on November thirtieth, twenty twenty-six"),
        ("the 21st of May", "the twenty-first of May"),
        ("5%", "five percent"),
        ("3.5 km", "three point five kilometers"),
        ("1 kg", "one kilogram"),
        ("-5 °C", "minus five degrees Celsius"),
        ("in 1999", "in nineteen ninety-nine"),
        ("1,000,000 people", "one million people"),
        ("007", "zero zero seven"),
        ("pi is 3.14", "pi is three point one four"),
        ("no numbers here", "no numbers here"),
        ("2026-13-40", "2026-13-40"),
    ],
)
def test_english_is_said_as_people_say_it(say: SpokenForms, written: str, said: str) -> None:
    assert say(written) == said


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("价格是¥12.5", "价格是十二点五元"),
        ("现在10:05", "现在十点零五分"),
        ("下午好，3:30 pm见", "下午好，下午三点三十分见"),  # noqa: RUF001
        ("日期2026-11-30", "日期二零二六年十一月三十日"),
        ("2026年11月30日", "二零二六年十一月三十日"),
        ("气温25°C", "气温二十五摄氏度"),
        ("第21名", "第二十一名"),
        ("占50%", "占百分之五十"),
        ("跑了3.5 km", "跑了三点五公里"),
        ("一共12,345人", "一共一万二千三百四十五人"),
        ("零下-5度", "零下负五度"),
    ],
)
def test_chinese_is_said_as_people_say_it(say: SpokenForms, written: str, said: str) -> None:
    assert say(written) == said


@given(text=st.text(alphabet=st.sampled_from("0123456789.,:-%$€£¥°CFkmhsdtr日年月点 a")))
def test_any_mixture_is_said_without_an_error(say: SpokenForms, text: str) -> None:
    assert isinstance(say(text), str)
