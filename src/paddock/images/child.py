"""The child half of cleaning: one picture on standard input, the same drawn anew on standard output, then gone.

It limits itself before it looks at a single byte. Writing a picture anew leaves out where and with what it was taken
(EXIF, XMP, comments, colour profiles), and whatever else was hidden behind its last pixel. How it is turned stays, and
so do its colours: a profile is not handed on, the pixels are converted to what everybody takes for granted (sRGB).
"""

import io
import sys
import zlib
from typing import Any

import msgspec

from paddock.confinement.limits import hold_still
from paddock.rules.errors import advice

CPU_SECONDS = 20
MEMORY_BYTES = 1536 * 1024 * 1024
MAX_FRAMES = 500
NOT_LOADED = "the library that draws pictures cannot be loaded"
ORIENTATION = 0x0112
FORMATS = {"image/png": "PNG", "image/jpeg": "JPEG", "image/webp": "WEBP", "image/gif": "GIF"}


class UnfitError(Exception):
    """The picture is refused; the text says why."""


def main(mime_type: str, max_pixels: int) -> None:
    hold_still(memory_bytes=MEMORY_BYTES, cpu_seconds=CPU_SECONDS)
    try:
        size, content = cleaned(sys.stdin.buffer.read(), mime_type, max_pixels)
        head: dict[str, Any] = {"width": size[0], "height": size[1]}
    except UnfitError as error:
        head, content = {"problem": str(error)}, b""
    except ModuleNotFoundError as error:
        head, content = {"problem": advice("drawing pictures", error) or NOT_LOADED}, b""
    except MemoryError:
        head, content = {"problem": "it needs more memory than a picture may take"}, b""
    sys.stdout.buffer.write(msgspec.json.encode(head) + b"\n" + content)


def cleaned(content: bytes, mime_type: str, max_pixels: int) -> tuple[tuple[int, int], bytes]:
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = None  # we count ourselves, below, before anything is unpacked
    wanted = FORMATS[mime_type]
    try:
        sound = without_damaged_extras(content) if wanted == "PNG" else content
        with Image.open(io.BytesIO(sound), formats=[wanted]) as picture:
            frames = _frames(picture, wanted)
            _check_pixels(picture, frames, max_pixels)
            return _drawn_anew(picture, frames, wanted)
    except UnfitError:
        raise
    except Exception as error:
        raise UnfitError(f"it cannot be read as {mime_type}") from error


def without_damaged_extras(content: bytes) -> bytes:
    """A PNG without those of its optional chunks whose checksum is wrong: viewers pass over them, our decoder refuses
    the whole. The chunks that hold the pixels stay as they are, right or wrong."""
    kept, at = [content[:8]], 8
    while at < len(content):
        end = at + 12 + int.from_bytes(content[at : at + 4])
        optional, checksum = content[at + 4 : at + 5].islower(), content[end - 4 : end]
        if not optional or zlib.crc32(content[at + 4 : end - 4]) == int.from_bytes(checksum):
            kept.append(content[at:end])
        at = end
    return b"".join(kept)


def _frames(picture: Any, wanted: str) -> int:
    """Of a JPEG only the first picture counts; some cameras put a second, smaller one behind it."""
    return 1 if wanted == "JPEG" else getattr(picture, "n_frames", 1)


def _check_pixels(picture: Any, frames: int, most: int) -> None:
    width, height = picture.size
    if frames > MAX_FRAMES:
        raise UnfitError(f"it has {frames} frames and may have {MAX_FRAMES}")
    if width * height * frames > most:
        raise UnfitError(f"it has {width} x {height} pixels in {frames} frame(s) and may have {most} in all")


def _drawn_anew(picture: Any, frames: int, wanted: str) -> tuple[tuple[int, int], bytes]:
    from PIL import ImageOps

    out = io.BytesIO()
    if frames > 1:
        picture.save(out, wanted, **_moving(picture))
        return picture.size, out.getvalue()
    upright = picture.getexif().get(ORIENTATION, 1) == 1
    turned = picture if upright else ImageOps.exif_transpose(picture)
    shown = _in_common_colours(turned)
    said = _still(wanted, as_it_was=shown is picture and picture.format == wanted)
    kept = picture.info.get("transparency") if shown.mode == picture.mode else None
    shown.info = {} if kept is None else {"transparency": kept}
    shown.save(out, wanted, **said)
    return shown.size, out.getvalue()


def _in_common_colours(picture: Any) -> Any:
    """The picture in sRGB if it comes with a profile of its own; as it is where that profile is of no use."""
    profile = picture.info.get("icc_profile")
    if not profile or picture.mode not in ("RGB", "RGBA", "CMYK"):
        return picture
    from PIL import ImageCms

    cms: Any = ImageCms  # it says little of its types
    try:
        own, common = cms.ImageCmsProfile(io.BytesIO(profile)), cms.createProfile("sRGB")
        return cms.profileToProfile(picture, own, common, outputMode="RGBA" if picture.mode == "RGBA" else "RGB")
    except (cms.PyCMSError, OSError, ValueError):
        return picture


def _still(wanted: str, *, as_it_was: bool) -> dict[str, Any]:
    if wanted == "JPEG":  # its own tables again, where nothing was done to it: that loses next to nothing
        return {"quality": "keep" if as_it_was else 92}
    return {"quality": 92, "method": 2} if wanted == "WEBP" else {}


def _moving(picture: Any) -> dict[str, Any]:
    """Keep the frames and timing of a moving picture, and no other metadata."""
    from PIL import ImageSequence

    times: list[int] = []
    for frame in ImageSequence.Iterator(picture):
        frame.load()  # some formats know the time of a frame only then
        times.append(frame.info.get("duration", 100))
    picture.seek(0)
    loop = picture.info.get("loop")
    picture.info = {name: value for name, value in picture.info.items() if name in {"transparency", "background"}}
    said: dict[str, Any] = {"save_all": True, "duration": times, "exif": b"", "xmp": b"", "comment": b""}
    return said if loop is None else {**said, "loop": loop}


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
