"""The definitions of all keyed tables, as files: `tables/<name>/table.ckpt`.

A table is created by its file, after its topic, and dropped by one rename of its folder, before its
topic. What a crash leaves behind is finished by the next create or `finish_drops`.
"""

from __future__ import annotations

import msgspec

from frazil.disk import Disk, make_directories, read_checkpoint, write_checkpoint
from frazil.errors import Corrupt
from frazil.tables.definition import NAME, TableDefinition

FOLDER = "tables"
FILE_NAME = "table.ckpt"
LOADS_FOLDER = "loads"
"""In the folder of a table: what it was loaded from."""
KIND = b"KTBL"
VERSION = 1
DROPPED_PREFIX = ".dropped-"
"""Of folders of dropped tables; their id and name follow. No table's name begins with a dot."""
HINT = "Restore the file from a copy; it holds the columns and the key of the table."


def table_folder(name: str) -> str:
    return f"{FOLDER}/{name}"


def partition_folder(name: str, partition: int) -> str:
    return f"{FOLDER}/{name}/{partition}"


def table_names(disk: Disk) -> list[str]:
    """Return the tables on disk. A folder without a definition is an unfinished table."""
    return [
        name
        for name in disk.list(FOLDER)
        if NAME.fullmatch(name) and FILE_NAME in disk.list(table_folder(name))
    ]


def load_definition(disk: Disk, name: str) -> TableDefinition | None:
    """Return a definition, None if there is no such table. Raises `Corrupt` if it is damaged."""
    path = f"{table_folder(name)}/{FILE_NAME}"
    body = read_checkpoint(disk, path, KIND, VERSION, HINT)
    if body is None:
        return None
    try:
        return msgspec.json.decode(body, type=TableDefinition)
    except msgspec.DecodeError as error:
        raise Corrupt(
            path=path, position=16, expected="a definition", found=str(error), hint=HINT
        ) from None


def save_definition(disk: Disk, definition: TableDefinition) -> None:
    """Create or replace a definition. Durable on return."""
    folder = table_folder(definition.name)
    make_directories(disk, folder)
    disk.sync_directory(folder)
    body = msgspec.json.encode(definition)
    write_checkpoint(disk, f"{folder}/{FILE_NAME}", KIND, VERSION, body)


def bury_table(disk: Disk, definition: TableDefinition) -> str:
    """Make a table invisible, durably. Returns its new folder, for `remove_buried_table`."""
    buried = f"{FOLDER}/{DROPPED_PREFIX}{definition.table_id.hex}-{definition.name}"
    disk.rename(table_folder(definition.name), buried)
    disk.sync_directory(FOLDER)
    return buried


def buried_tables(disk: Disk) -> dict[str, str]:
    """Return the folders of dropped tables that still exist, and the names of the tables."""
    return {
        f"{FOLDER}/{name}": name.removeprefix(DROPPED_PREFIX).partition("-")[2]
        for name in disk.list(FOLDER)
        if name.startswith(DROPPED_PREFIX)
    }


def remove_buried_table(disk: Disk, buried: str) -> None:
    """Remove the folder of a dropped table, whose topic is gone."""
    loads = f"{buried}/{LOADS_FOLDER}"
    for name in disk.list(loads):
        if "." not in name:
            remove_folder(disk, f"{loads}/{name}")
    for name in disk.list(buried):
        path = f"{buried}/{name}"
        if name.isdigit() or name == LOADS_FOLDER:
            remove_folder(disk, path)
        else:
            disk.unlink(path)
    disk.remove_directory(buried)
    disk.sync_directory(FOLDER)


def remove_folder(disk: Disk, path: str) -> None:
    """Remove a folder with its files."""
    for name in disk.list(path):
        disk.unlink(f"{path}/{name}")
    disk.remove_directory(path)
