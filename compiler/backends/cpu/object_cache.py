"""Object code kept on disk between runs.

An entry is named after everything its contents depend on, so it is never out of date; it carries a digest
of its contents, so a damaged one is noticed and ignored. Several processes may share the directory: an
entry appears complete or not at all.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_MAGIC = b"xla-explore object 1\n"
_DIGEST_BYTES = 32
_SUFFIX = ".o"
_STORES_BETWEEN_TRIMS = 64


def default_directory() -> Path:
    """``$XDG_CACHE_HOME/xla-explore/objects``, with the usual default of ``~/.cache``."""
    root = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(root) if os.path.isabs(root) else Path.home() / ".cache"
    return base / "xla-explore" / "objects"


class ObjectCache:
    """A directory of object files.

    Args:
        directory: where the entries lie; made on the first store.
        limit_bytes: what all entries together may take; the ones unused for longest go first.
    """

    def __init__(self, directory: Path | None = None, limit_bytes: int = 256 << 20) -> None:
        self._directory = directory if directory is not None else default_directory()
        self._limit = limit_bytes
        self._stores = 0

    @staticmethod
    def key(parts: Iterable[str]) -> str:
        """The name of the entry that depends on `parts`."""
        digest = hashlib.sha256()
        for part in parts:
            data = part.encode()
            digest.update(len(data).to_bytes(8, "little"))
            digest.update(data)
        return digest.hexdigest()

    def get(self, key: str) -> bytes | None:
        """The contents stored under `key`, or None where there is none or it is damaged."""
        path = self._directory / (key + _SUFFIX)
        try:
            data = path.read_bytes()
        except OSError:
            return None
        start = len(_MAGIC) + _DIGEST_BYTES
        contents = data[start:]
        if data[: len(_MAGIC)] != _MAGIC or hashlib.sha256(contents).digest() != data[len(_MAGIC) : start]:
            with suppress(OSError):
                path.unlink()
            return None
        with suppress(OSError):
            os.utime(path)
        return contents

    def put(self, key: str, contents: bytes) -> None:
        """Stores `contents`; on a disk that is full or read-only the entry is just not kept."""
        with suppress(OSError):
            self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle, name = tempfile.mkstemp(dir=self._directory, prefix=".", suffix=".part")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(_MAGIC + hashlib.sha256(contents).digest() + contents)
                os.replace(name, self._directory / (key + _SUFFIX))
            except OSError:
                os.unlink(name)
                raise
        if self._stores % _STORES_BETWEEN_TRIMS == 0:
            self.trim()
        self._stores += 1

    def trim(self) -> None:
        """Removes the entries unused for longest until the rest fits the limit."""
        entries = []
        for path in self._directory.glob("*" + _SUFFIX):
            with suppress(OSError):
                status = path.stat()
                entries.append((status.st_mtime, status.st_size, path))
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if total <= self._limit:
                return
            with suppress(OSError):
                path.unlink()
            total -= size
