"""Pictures drawn anew: what can be seen stays, what was told beside it goes, and what is no picture is refused."""

import struct
import zlib

import pytest
from PIL import Image, ImageCms

from images.pictures import FORMATS, SECRET, encoded, moving, opened, picture, telling
from paddock.images.child import UnfitError, cleaned
from paddock.images.cleaning import ChildPictures
from paddock.rules.errors import HostError

MOST = 1_000_000


@pytest.mark.parametrize("mime_type", FORMATS)
def test_what_was_told_beside_a_picture_is_gone_and_the_picture_is_not(mime_type: str) -> None:
    given = telling(mime_type)
    assert SECRET.encode() in given
    size, content = cleaned(given, mime_type, MOST)
    assert SECRET.encode() not in content
    shown = opened(content)
    assert (shown.format, shown.size, size) == (FORMATS[mime_type], (6, 4), (6, 4))
    red, _, blue = shown.convert("RGB").getpixel((0, 0))  # pyright: ignore[reportGeneralTypeIssues]
    assert red > 200 > blue


def test_a_picture_that_says_how_it_is_turned_is_turned() -> None:
    size, content = cleaned(telling("image/jpeg", orientation=6), "image/jpeg", MOST)
    assert size == opened(content).size == (4, 6)
    assert not opened(content).getexif()


def in_other_colours(mime_type: str, *, frames: int = 1, orientation: int = 1) -> bytes:
    """A picture of plain green in the colours of a device of its own, whose red and green are exchanged."""
    profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    red, green = profile.index(b"rXYZ"), profile.index(b"gXYZ")
    profile[red : red + 4], profile[green : green + 4] = b"gXYZ", b"rXYZ"
    exif = Image.Exif()
    exif[0x0112] = orientation
    more = {"save_all": True, "append_images": [Image.new("RGB", (6, 4))], "duration": 70} if frames > 1 else {}
    image = Image.new("RGB", (6, 4), (0, 255, 0))
    return encoded(image, mime_type, icc_profile=bytes(profile), exif=exif, **more)


@pytest.mark.parametrize("mime_type", ["image/png", "image/jpeg", "image/webp"])
@pytest.mark.parametrize("orientation", [1, 6])
def test_a_colour_profile_is_not_handed_on_and_the_colours_stay(mime_type: str, orientation: int) -> None:
    given = in_other_colours(mime_type, orientation=orientation)
    assert opened(given).info["icc_profile"]
    size, content = cleaned(given, mime_type, MOST)
    assert "icc_profile" not in opened(content).info
    assert b"gXYZ" not in content
    assert size == ((6, 4) if orientation == 1 else (4, 6))
    red, green, _ = opened(content).convert("RGB").getpixel((2, 2))  # pyright: ignore[reportGeneralTypeIssues]
    assert red > 200, "that device shows it red"
    assert green < 60


@pytest.mark.parametrize("mime_type", ["image/png", "image/jpeg", "image/webp"])
def test_a_profile_that_nobody_can_read_goes_and_the_picture_stays(mime_type: str) -> None:
    _, content = cleaned(picture(mime_type, icc_profile=b"nonsense" * 40), mime_type, MOST)
    assert b"nonsense" not in content
    assert opened(content).size == (6, 4)


@pytest.mark.parametrize("mime_type", ["image/png", "image/webp"])
def test_a_picture_that_moves_hands_on_no_profile(mime_type: str) -> None:
    _, content = cleaned(in_other_colours(mime_type, frames=2), mime_type, MOST)
    assert "icc_profile" not in opened(content).info
    assert b"gXYZ" not in content


@pytest.mark.parametrize("mime_type", ["image/gif", "image/webp", "image/png"])
def test_a_picture_that_moves_still_moves(mime_type: str) -> None:
    _, content = cleaned(moving(mime_type), mime_type, MOST)
    shown = opened(content)
    assert (shown.n_frames, shown.info["loop"]) == (3, 0)  # pyright: ignore[reportAttributeAccessIssue]
    shown.seek(1)
    shown.load()
    assert shown.info["duration"] == 70


def test_a_picture_with_damage_beside_its_pixels_is_taken_and_one_with_damaged_pixels_is_not() -> None:
    notes = telling("image/png")
    at = notes.index(SECRET.encode())
    size, content = cleaned(notes[:at] + b"T" + notes[at + 1 :], "image/png", MOST)
    assert (opened(content).size, size) == ((6, 4), (6, 4))
    at = notes.index(b"IDAT") + 6
    with pytest.raises(UnfitError):
        cleaned(notes[:at] + b"\0\0\0" + notes[at + 3 :], "image/png", MOST)


def test_bytes_behind_the_picture_are_not_kept() -> None:
    _, content = cleaned(picture() + b"<script>alert(1)</script>", "image/png", MOST)
    assert b"script" not in content


def a_bomb(width: int, height: int) -> bytes:
    """A PNG that says it is huge and is a few bytes long."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"\0" * 64)) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("content", "mime_type", "reason"),
    [
        (picture(size=(1000, 1001)), "image/png", "1000 x 1001 pixels"),
        (a_bomb(2**30, 2**30), "image/png", "pixels"),
        (moving("image/gif", frames=501), "image/gif", "501 frames"),
        (picture()[:40], "image/png", "cannot be read"),
        (picture("image/jpeg"), "image/png", "cannot be read"),
        (b"\x89PNG\r\n\x1a\n" + b"<svg onload=alert(1)>", "image/png", "cannot be read"),
    ],
)
def test_what_is_no_picture_or_too_much_of_one_is_refused(content: bytes, mime_type: str, reason: str) -> None:
    with pytest.raises(UnfitError, match=reason):
        cleaned(content, mime_type, MOST)


@pytest.mark.anyio
async def test_it_happens_in_a_process_of_its_own_that_has_an_end() -> None:
    pictures = ChildPictures()
    found = await pictures.clean(telling("image/jpeg"), "image/jpeg", max_pixels=MOST)
    assert (found.width, found.height) == (6, 4)
    assert SECRET.encode() not in found.content
    with pytest.raises(HostError, match="this picture is not taken: it cannot be read"):
        await pictures.clean(b"nothing", "image/png", max_pixels=MOST)
    with pytest.raises(HostError, match="more time or memory"):
        await ChildPictures(seconds=0.001).clean(picture(), "image/png", max_pixels=MOST)
