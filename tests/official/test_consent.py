"""What counts as a yes and as a no to a question before something is done."""

import pytest

from paddock_runners.toolkit.consent import consent_in

YES = """yes / Yes. / YES! / y / yes please / Yes, please! / sure, go ahead / ok / okay, thanks / yes yes / do it
 / please do it / go ahead, thank you / I approve / yes, I agree. / of course / approved / 是 / 是的 / 好 / 好的，谢谢
 / 好的谢谢！ / 可以 / 可以，请执行 / 同意 / 我同意。 / 没问题"""
NO = """no / No. / n / no thanks / no, thank you / nope! / don't / don\u2019t do it / please do not / cancel / stop
 / never mind / no, only 3 / No! Take the blue one instead. / no - ask Ann first / 不 / 不要 / 不用，谢谢 / 拒绝
 / 不用了，谢谢 / 取消。 / 不，只要 3 个 / 算了"""
NEITHER = """yes but only 3 / yes? / ok? / yes if it is free / yes, no / yes and no / sure, but first tell me / why?
 / what would that do? / ja / maybe / hmm / please / thanks / no problem / no idea / not yes / yesterday / oky / yes 3
 / say yes / is that ok / 可以吗 / 可以，但只要 3 个 / 不错 / 好不好 / 是不是 / 好像不对 / 同意什么 / 行不行
 / okno / """


def listed(words: str) -> list[str]:
    return [word.strip(" \n") for word in words.split(" /")]


@pytest.mark.parametrize("words", listed(YES))
def test_a_plain_yes_is_a_yes(words: str) -> None:
    assert consent_in(words) is True


@pytest.mark.parametrize("words", listed(NO))
def test_a_no_is_a_no_also_when_it_says_what_is_wanted_instead(words: str) -> None:
    assert consent_in(words) is False


@pytest.mark.parametrize("words", listed(NEITHER))
def test_everything_else_is_neither(words: str) -> None:
    assert consent_in(words) is None


def test_a_very_long_message_is_read_in_no_time() -> None:
    assert consent_in("好" * 100_000 + "?") is None
    assert consent_in("no" * 100_000) is None
    assert consent_in(" ," * 100_000 + "?") is None
