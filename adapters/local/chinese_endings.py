"""Whether a Chinese utterance sounds finished, by its last characters."""

from __future__ import annotations

import re

FINISHED, LIKELY, UNFINISHED = 0.9, 0.75, 0.1

_CHARACTERS = re.compile(r"[\u3400-\u9fffA-Za-z0-9]+")


def _listed(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_WHOLE = frozenset(_listed("对 是 好 行 停 不 没有 可以 不会 不能 不想 我 会 能 要 想 应该 再来 继续 不是 是不是"))
"""Complete answers and commands, though as the end of something longer they might not be."""

_OPEN_ENDINGS = _listed(
    # conjunctions and openers of clauses
    "然后 因为 所以 但是 可是 不过 而且 并且 还有 或者 以及 如果 要是 虽然 即使 既然 除了 比如 比如说 例如 另外 "
    "首先 其次 就是说 也就是 只要 只有 为了 关于 由于 至于 不但 和 跟 与 而 那么 "
    # clauses that depend on another
    "的时候 以后 之后 以前 之前 的话 "
    # fillers
    "嗯 呃 额 那个 就是 怎么说呢 这个嘛 "
    # what needs a verb or an object
    "请 请帮我 帮我 给我 告诉我 提醒我 把 被 给 在 从 向 往 让 叫 想 想要 应该 需要 打算 能 会 得 "
    # adverbs
    "很 非常 比较 最 更 太 也 都 就 才 还 再 又 先 特别 有点 可能 大概 大约 "
    # quantities without their noun
    "一个 两个 三个 几个 一些 第 星期 每 每个 某 "
    # subjects and what speech reports
    "我们 他们 你们 他 她 他说 她说 我说 我觉得 我想 我要 我有"
)
_PARTICLES = _listed("吗 呢 吧 了 呀 嘛 啦 哦 啊 么")
_QUESTIONS = _listed(
    "什么 谁 哪里 哪儿 哪个 多少 多少钱 几点 怎么样 怎么办 为什么 多久 多远 多大 名字 是不是 好不好 能不能 行不行 "
    "要不要 对不对 会不会 可不可以"
)
_POSSESSED = _listed("是的 好的 对的 真的 行的 可以的 我的 你的 他的 她的 谁的 们的 会的 挺好的 不错的 没事的 一样的")
"""Before these 的 ends something; elsewhere a noun follows it."""

_DEPENDENT = _listed("如果 要是 虽然 因为 当 只要 即使 既然 不但 除了")
_MAIN = _listed("就 也 都 那 但 所以 还 才 而且 会")
_DICTATED = _listed("电话 号码 密码 验证码")
_DIGITS = "零一二三四五六七八九十幺0123456789"
_MIN_DICTATED = 4
_LONG_CLAUSE = 12


def chinese_probability(text: str) -> float:
    """0 to 1: how likely nothing more comes."""
    said = "".join(_CHARACTERS.findall(text))
    if not said:
        return UNFINISHED
    if said in _WHOLE:
        return FINISHED
    if any(word in said for word in _DICTATED) and said[-1] in _DIGITS:
        trailing = len(said) - len(said.rstrip(_DIGITS))
        return UNFINISHED if trailing < _MIN_DICTATED else LIKELY
    if said.endswith(_QUESTIONS) and not said.startswith(_DEPENDENT):
        return FINISHED
    if said.endswith(_OPEN_ENDINGS) or _lacks_its_object(said):
        return UNFINISHED
    if said.endswith("的"):
        return FINISHED if said.endswith(_POSSESSED) and not _asks_for_more(said) else UNFINISHED
    if said.startswith(_DEPENDENT) and len(said) < _LONG_CLAUSE and not any(word in said[2:] for word in _MAIN):
        return UNFINISHED
    return FINISHED if said.endswith(_PARTICLES) else LIKELY


def _lacks_its_object(said: str) -> bool:
    """A copula, or a way of which the end is not told: 我是, 从这里到."""
    return (said.endswith("是") and not said.endswith("不是")) or (said.startswith("从") and said.endswith("到"))


def _asks_for_more(said: str) -> bool:
    """A possessive in a question that is still being asked: 你知道不知道我的."""
    return len(said) > 4 and said.endswith(("我的", "你的", "他的", "她的", "们的")) and "是" not in said
