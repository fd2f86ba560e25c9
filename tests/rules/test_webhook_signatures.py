"""Signed webhooks as the Standard Webhooks convention has them, and signatures that are none."""

import pytest

from paddock.rules.access.signatures import is_signed_webhook, webhook_key, webhook_signature

KEY = webhook_key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
BODY = b'{"test": 2432232314}'
MESSAGE = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": "1614265330",
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}


def test_the_example_of_the_convention_has_the_signature_it_publishes() -> None:
    made = webhook_signature(KEY, MESSAGE["webhook-id"], int(MESSAGE["webhook-timestamp"]), BODY)
    assert made == MESSAGE["webhook-signature"]
    assert is_signed_webhook(KEY, MESSAGE, BODY)


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("webhook-signature", ""),
        ("webhook-signature", "no comma"),
        ("webhook-signature", "v1,no base64"),
        ("webhook-signature", "v1,\udcff"),
        ("webhook-signature", "v2,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
        ("webhook-timestamp", "1614265330.5"),
        ("webhook-timestamp", "nan"),
        ("webhook-timestamp", "9" * 400),
        ("webhook-timestamp", "-1614265330"),
        ("webhook-id", ""),
        ("webhook-id", "msg_another"),
    ],
)
def test_another_header_is_refused_and_breaks_nothing(header: str, value: str) -> None:
    assert not is_signed_webhook(KEY, {**MESSAGE, header: value}, BODY)


def test_a_body_that_is_no_text_is_refused_and_breaks_nothing() -> None:
    assert not is_signed_webhook(KEY, MESSAGE, b"\xff\xfe")
