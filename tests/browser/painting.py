"""Tools that give back more than words: a picture, a sound, a text too long for a result. No tests live here."""

import io
from typing import Any

from PIL import Image, ImageDraw


def paint(width: int = 900, height: int = 600) -> list[Any]:
    """Paint a house, and give back a sound with it."""
    image = Image.new("RGB", (width, height), "skyblue")
    pen = ImageDraw.Draw(image)
    pen.rectangle((0, height * 2 // 3, width, height), fill="forestgreen")
    pen.rectangle((width // 3, height // 3, width * 2 // 3, height * 5 // 6), fill="firebrick")
    pen.polygon([(width // 4, height // 3), (width // 2, height // 10), (width * 3 // 4, height // 3)], fill="sienna")
    out = io.BytesIO()
    image.save(out, "PNG")
    return ["a house, as you asked", out.getvalue(), b"RIFF\xff\x00\x00\x00WAVE" + bytes(1_500)]


def recite() -> str:
    """Say far more than a result may hold."""
    return "the raven " * 5_000
