"""Where an export comes from: a file, a folder or a zip archive, all seen as a list of entries.

Archives are untrusted: nothing is ever unpacked to disk (so no name in them can point anywhere), and what an entry may
come to is bounded before and while it is read.
"""

from __future__ import annotations

import codecs
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from producer.importing.rows import UnreadableExport

MAX_ENTRIES = 200_000
MAX_ENTRY_BYTES = 16 * 1024**3
# Deflate can shrink a gigabyte of one letter to a megabyte. Chats, JSON with all its repeated keys included, shrink to
# a thirtieth at most.
MAX_RATIO = 200
_RATIO_MATTERS_FROM = 4 * 1024**2
MAX_LINE_BYTES = 8 * 1024**2
_BLOCK = 256 * 1024

# Never a chat: passed over without a look inside.
_MEDIA = frozenset((
    ".jpg", ".jpeg", ".png", ".gif", ".webp", ".heic", ".bmp", ".svg", ".mp4", ".mov", ".3gp", ".mkv", ".avi",
    ".webm", ".opus", ".ogg", ".oga", ".mp3", ".m4a", ".aac", ".wav", ".amr", ".pdf", ".docx", ".xlsx", ".pptx",
    ".zip", ".gz", ".7z", ".rar", ".apk", ".tgs", ".vcf", ".html", ".htm", ".css", ".js", ".ttf", ".woff", ".woff2",
    ".sqlite", ".db",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of an export. ``name`` is its path inside the export, with slashes; ``open`` gives its bytes anew."""

    name: str
    open: Callable[[], IO[bytes]]

    @property
    def stem(self) -> str:
        """The last part of the name, without its ending."""
        return PurePosixPath(self.name).stem

    @property
    def folder(self) -> str:
        """The name of the folder that it lies in; "" at the top."""
        return PurePosixPath(self.name).parent.name

    @property
    def is_media(self) -> bool:
        """Whether the name alone says that this holds no chat."""
        return PurePosixPath(self.name).suffix.lower() in _MEDIA

    def head(self, size: int) -> bytes:
        """The first ``size`` bytes."""
        with self.open() as stream:
            return _guarded(stream, self.name).read(size)

    @contextmanager
    def text(self) -> Iterator[Iterator[str]]:
        """The decoded text in blocks. Raises UnreadableExport, with the line, for what is no UTF-8 (or UTF-16)."""
        with self.open() as stream:
            yield self._decoded(_guarded(stream, self.name))

    def _decoded(self, stream: _Guarded) -> Iterator[str]:
        first = stream.read(_BLOCK)
        decoder = codecs.getincrementaldecoder(encoding_of(first))()
        line, block = 1, first
        while True:
            try:
                text = decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                line += error.object[: error.start].count(b"\n")
                raise UnreadableExport(f"{self.name}: line {line}: is not UTF-8; save the file as UTF-8") from None
            line += text.count("\n")
            if text:
                yield text
            if not block:
                return
            block = stream.read(_BLOCK)

    def lines(self) -> Iterator[tuple[int, str, bool]]:
        """The lines: (number from 1, text without its end, whether it was good UTF-8 of bearable length).

        A bad line is decoded as well as can be, so that a reader can tell what it would have been.
        """
        with self.open() as raw:
            stream = _guarded(raw, self.name)
            encoding = encoding_of(stream.peek(4))
            if encoding != "utf-8-sig":
                yield from self._wide_lines()
                return
            number = 0
            while line := stream.readline(MAX_LINE_BYTES):
                number += 1
                good = line.endswith(b"\n") or len(line) < MAX_LINE_BYTES
                rest = line
                while not rest.endswith(b"\n") and len(rest) >= MAX_LINE_BYTES:
                    rest = stream.readline(MAX_LINE_BYTES)
                name = "utf-8-sig" if number == 1 else "utf-8"
                try:
                    yield number, line.decode(name).rstrip("\r\n"), good
                except UnicodeDecodeError:
                    yield number, line.decode(name, "replace").rstrip("\r\n"), False

    def _wide_lines(self) -> Iterator[tuple[int, str, bool]]:
        """The lines of a UTF-16 text."""
        rest, number = "", 0
        with self.text() as blocks:
            for block in blocks:
                *whole, rest = (rest + block).split("\n")
                for line in whole:
                    number += 1
                    yield number, line.rstrip("\r"), True
        if rest:
            yield number + 1, rest.rstrip("\r"), True


def encoding_of(start: bytes) -> str:
    """The encoding that the first bytes of a text announce; UTF-8 where they announce none."""
    return "utf-16" if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig"


@contextmanager
def opened(path: Path) -> Iterator[list[Entry]]:
    """The entries of the file, folder or zip at ``path``, by name. Raises UnreadableExport, OSError."""
    if path.is_dir():
        yield _of_folder(path)
    elif _is_zip(path):
        try:
            archive = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
            raise UnreadableExport(f"{path.name}: is a damaged zip archive: {error}") from None
        with archive:
            yield _of_zip(archive, path.name)
    else:
        yield [Entry(path.name, lambda: path.open("rb"))]


def _is_zip(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(4) in (b"PK\x03\x04", b"PK\x05\x06")


def _of_folder(folder: Path) -> list[Entry]:
    """Links are passed over: a folder from elsewhere must not lead into another one."""
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        if any(parent.is_symlink() for parent in path.relative_to(folder).parents if str(parent) != "."):
            continue
        name = path.relative_to(folder).as_posix()
        if not _hidden(name):
            found.append(Entry(name, lambda path=path: path.open("rb")))  # type: ignore[misc]
        if len(found) > MAX_ENTRIES:
            raise UnreadableExport(f"{folder.name}: holds over {MAX_ENTRIES} files; name the export's own folder")
    return found


def _of_zip(archive: zipfile.ZipFile, name: str) -> list[Entry]:
    infos = archive.infolist()
    if len(infos) > MAX_ENTRIES:
        raise UnreadableExport(f"{name}: holds {len(infos)} files; more than {MAX_ENTRIES} are no chat export")
    found = []
    for info in sorted(infos, key=lambda info: info.filename):
        if info.is_dir() or _hidden(info.filename):
            continue
        found.append(Entry(info.filename, lambda info=info: _open_in(archive, info)))  # type: ignore[misc]
    return found


def _hidden(name: str) -> bool:
    """What packing programs leave behind, and hidden files."""
    parts = PurePosixPath(name).parts
    return any((part.startswith(".") and part not in (".", "..")) or part == "__MACOSX" for part in parts)


def _open_in(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> IO[bytes]:
    """The bytes of an entry. Its declared size binds: zipfile stops there and checks the sum."""
    if info.flag_bits & 0x1:
        raise UnreadableExport(f"{info.filename}: is encrypted; unpack the archive with its password first")
    if info.file_size > MAX_ENTRY_BYTES:
        raise UnreadableExport(f"{info.filename}: claims {info.file_size} bytes; at most {MAX_ENTRY_BYTES} are read")
    if info.file_size > _RATIO_MATTERS_FROM and info.file_size > MAX_RATIO * max(info.compress_size, 1):
        raise UnreadableExport(
            f"{info.filename}: {info.compress_size} bytes unpack to {info.file_size}; no chat shrinks like that, so "
            "the archive is taken for a trap (if it is none, unpack it yourself and import the folder)"
        )
    try:
        return archive.open(info)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise UnreadableExport(f"{info.filename}: cannot be unpacked: {error}") from None


class _Guarded:
    """A stream whose archive's faults come as one line, not as a traceback."""

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self._stream, self._name = stream, name

    def read(self, size: int) -> bytes:
        return self._safely(lambda: self._stream.read(size))

    def readline(self, size: int) -> bytes:
        return self._safely(lambda: self._stream.readline(size))

    def peek(self, size: int) -> bytes:
        return self._safely(lambda: self._stream.peek(size)[:size])  # type: ignore[attr-defined]

    def _safely(self, act: Callable[[], bytes]) -> bytes:
        try:
            return act()
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise UnreadableExport(f"{self._name}: the archive is damaged here: {error}") from None


def _guarded(stream: IO[bytes], name: str) -> _Guarded:
    return _Guarded(stream, name)
