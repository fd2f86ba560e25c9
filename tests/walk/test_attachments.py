"""A picture that a person sends: kept, and read by the address the host signed for it."""

import base64

from walk.hosts import HostProcess

A_PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def test_a_picture_is_read_by_its_signed_address(host: HostProcess) -> None:
    with host.client() as client:
        sent = client.post("/api/v1/agent/attachments", files={"file": ("a.png", A_PIXEL, "image/png")})
        assert sent.status_code == 201, sent.text
        host.finished(host.post("hello", agent="echo").json()["taskId"])  # whoever is asked next is another host
        read = client.get(sent.json()["url"])
    assert (read.status_code, read.headers["content-type"]) == (200, "image/png"), read.text
