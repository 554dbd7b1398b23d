"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import uuid
from pathlib import Path


def write_new(target: Path, text: str) -> None:
    """Writes a file that does not exist yet.

    Raises:
        FileExistsError: for one that does.
    """
    part = target.with_name(f"{target.name}.{uuid.uuid4().hex}.part")
    try:
        with open(part, "x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        _publish(part, target)
    finally:
        part.unlink(missing_ok=True)


def _publish(part: Path, target: Path) -> None:
    """Gives a file its name, and replaces none."""
    try:
        # Unlike a rename, a link does not replace a file.
        os.link(part, target)
    except FileExistsError:
        raise
    except OSError:
        # This file system has no links.
        if target.exists():
            raise FileExistsError(f"{target} exists already") from None
        part.rename(target)
