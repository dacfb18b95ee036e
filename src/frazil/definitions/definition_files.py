"""The files of a folder of definitions, such as one of a git repository."""

from __future__ import annotations

from pathlib import Path

from frazil.errors import Malformed

ENDING = ".sql"
FILES_MAX = 5000


def definition_files(folder: Path) -> dict[str, str]:
    """Return the texts of all files that end with .sql below a folder, by path."""
    if not folder.is_dir():
        raise Malformed(f"{folder} is not a folder; name one with .sql files")
    paths = sorted(path for path in folder.rglob(f"*{ENDING}") if path.is_file())
    if len(paths) > FILES_MAX:
        raise Malformed(f"{folder} has {len(paths)} .sql files; the limit is {FILES_MAX}")
    files = {}
    for path in paths:
        try:
            files[str(path)] = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise Malformed(f"{path} is not UTF-8 text") from None
        except OSError as error:
            raise Malformed(f"{path} cannot be read: {error.strerror}") from None
    return files
