"""Pictures to upload, drawn here: small, and with things in them that should not be passed on."""

import io
from typing import Any

from PIL import Image, PngImagePlugin

SECRET = "taken at home"
FORMATS = {"image/png": "PNG", "image/jpeg": "JPEG", "image/webp": "WEBP", "image/gif": "GIF"}


def picture(mime_type: str = "image/png", size: tuple[int, int] = (6, 4), **saved: Any) -> bytes:
    """Left half red, right half blue."""
    image = Image.new("RGB", size, (255, 0, 0))
    image.paste((0, 0, 255), (size[0] // 2, 0, size[0], size[1]))
    return encoded(image, mime_type, **saved)


def encoded(image: Image.Image, mime_type: str, **saved: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, FORMATS[mime_type], **saved)
    return out.getvalue()


def telling(mime_type: str, *, orientation: int = 1) -> bytes:
    """One that says where it was taken, in every way its format has."""
    exif = Image.Exif()
    exif[0x010E], exif[0x0112] = SECRET, orientation
    if mime_type == "image/gif":
        return picture(mime_type, comment=SECRET.encode())
    notes = PngImagePlugin.PngInfo()
    notes.add_text("Comment", SECRET)
    more: dict[str, Any] = {
        "image/png": {"pnginfo": notes},
        "image/webp": {"xmp": SECRET.encode()},
    }.get(mime_type, {"comment": SECRET.encode()})
    return picture(mime_type, exif=exif, **more)


def moving(mime_type: str, frames: int = 3) -> bytes:
    images = [Image.new("RGB", (4, 4), (index % 4 * 60, 0, 0)) for index in range(frames)]
    out = io.BytesIO()
    images[0].save(out, FORMATS[mime_type], save_all=True, append_images=images[1:], duration=70, loop=0)
    return out.getvalue()


def opened(content: bytes) -> Image.Image:
    return Image.open(io.BytesIO(content))
