"""Relocate: the tables of a data folder that was copied, moved or restored.

Iceberg names files by absolute paths: in the catalog, in the metadata of a table, in the manifest
list of each snapshot, in manifests. In a folder that is somewhere else now, all of these name the
old place, where the original may still be in use.

    1. catalog      which tables name a place outside this folder, although the folder has the file?
    2. manifests    copies with the new paths; the old files stay as they are. Delete files of keyed
                    tables name data files, so they are copied, too
    3. metadata     a new version of the table that names the copies
    4. catalog      one update per table, if it has not changed meanwhile

A crash in between leaves files that nothing names. Nothing outside this folder is read or written.
Only the embedded catalog is relocated: its files are in the folder, and the folder has one owner.
"""

from __future__ import annotations

import io
import json
import logging
import sqlite3
import uuid
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from frazil.disk import RealDisk, write_whole
from frazil.errors import Conflict
from frazil.lake.catalog.catalog import catalog_path, catalog_properties
from frazil.model import Rand
from frazil.settings import LakeConfig

logger = logging.getLogger(__name__)

WAREHOUSE = "/lake/warehouse/"
"""Every path of an embedded table has this; what follows is the same wherever the folder is."""
POSITION_DELETES = 1
"""The `content` of such a file. Equality deletes name no data file."""
PATH_ID = 2147483546
"""Field id of the column `file_path` of a position delete file."""
LOCATIONS = "SELECT table_namespace, table_name, metadata_location FROM iceberg_tables"
UPDATE = (
    "UPDATE iceberg_tables SET metadata_location = ?, previous_metadata_location = ? WHERE "
    "table_namespace = ? AND table_name = ? AND metadata_location = ?"
)


def relocate(config: LakeConfig, data_folder: Path, rand: Rand) -> list[str]:
    """Make the tables of a moved folder name the files in it. Returns the tables changed.

    Call it before anything opens the catalog. `Conflict` if a table is elsewhere: nothing may
    be written there.
    """
    path = catalog_path(config, data_folder)
    if path is None or config.catalog or config.warehouse or not path.exists():
        return []
    warehouse = catalog_properties(config, data_folder)["warehouse"]
    with closing(sqlite3.connect(path)) as catalog:
        try:
            tables = catalog.execute(LOCATIONS).fetchall()
        except sqlite3.OperationalError:
            return []  # not created yet
        moved = []
        for namespace, name, location in tables:
            if location is None or location.startswith(f"{warehouse}/"):
                continue
            table = _MovedTable(f"{namespace}.{name}", location, warehouse, data_folder, rand)
            new = table.rewrite()
            with catalog:
                catalog.execute(UPDATE, (new, location, namespace, name, location))
            moved.append(f"{namespace}.{name}")
    if moved:
        logger.warning("tables relocated", extra={"tables": moved, "warehouse": warehouse})
    return moved


class _MovedTable:
    """One table whose metadata names another folder."""

    def __init__(
        self, name: str, location: str, warehouse: str, data_folder: Path, rand: Rand
    ) -> None:
        self._name = name
        self._rand = rand
        self._location = location
        self._warehouse = f"{warehouse}/"
        self._disk = RealDisk(data_folder / "lake" / "warehouse")
        before, found, _ = location.rpartition(WAREHOUSE)
        self._old = f"{before}{found}"
        if not found or not self._exists(location):
            raise Conflict(
                f"table {name} is in {location}, outside this data folder; copy or move the "
                f"folder as a whole, or set lake.warehouse = {location.rpartition('/metadata/')[0]}"
                " if the tables are meant to stay there"
            )
        self._manifests: dict[str, tuple[str, int]] = {}
        """Old path -> new path and length."""
        self._deletes: dict[str, tuple[str, int]] = {}
        """The same, of delete files."""

    def rewrite(self) -> str:
        """Write the metadata anew. Returns its location."""
        metadata = self._renamed(json.loads(self._read(self._location)))
        for snapshot in metadata.get("snapshots", []):
            snapshot["manifest-list"] = self._manifest_list(snapshot["manifest-list"])
        version = int(self._location.rpartition("/")[2].partition("-")[0]) + 1
        folder = self._relative(self._location).rpartition("/")[0]
        new = f"{folder}/{version:05d}-{self._unique()}.metadata.json"
        write_whole(self._disk, new, [json.dumps(metadata).encode()])
        return f"{self._warehouse}{new}"

    def _manifest_list(self, location: str) -> str:
        """Copy a manifest list, and the manifests in it. Returns its new location."""
        records, copy = self._avro(location)
        for record in records:
            manifest = record["manifest_path"]
            if manifest not in self._manifests:
                self._manifests[manifest] = self._manifest(manifest)
            record["manifest_path"], record["manifest_length"] = self._manifests[manifest]
        return copy(records)[0]

    def _manifest(self, location: str) -> tuple[str, int]:
        records, copy = self._avro(location)
        for record in records:
            file = record["data_file"]
            if file.get("content") == POSITION_DELETES and self._exists(file["file_path"]):
                record["data_file"] = self._renamed_deletes(file)
            else:
                record["data_file"] = self._renamed(file)
        return copy(records)

    def _renamed_deletes(self, file: dict[str, Any]) -> dict[str, Any]:
        """Copy a delete file, which names data files. Returns its entry."""
        old = file["file_path"]
        if old not in self._deletes:
            self._deletes[old] = self._copy_deletes(old)
        path, size = self._deletes[old]
        # A bound that was cut before the new part of the path says nothing: it is left out.
        bounds = {
            name: [
                {**each, "value": self._new(each["value"].decode()).encode()}
                if each["key"] == PATH_ID
                else each
                for each in file[name]
                if each["key"] != PATH_ID or self._is_old(each["value"].decode())
            ]
            for name in ("lower_bounds", "upper_bounds")
            if file.get(name) is not None
        }
        return {**file, **bounds, "file_path": path, "file_size_in_bytes": size}

    def _copy_deletes(self, location: str) -> tuple[str, int]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pq.read_table(pa.BufferReader(self._read(location)))
        paths = table.column(0).combine_chunks().dictionary_encode()
        names = pa.array([self._new(path) for path in paths.dictionary.to_pylist()], pa.string())
        renamed = pa.DictionaryArray.from_arrays(paths.indices, names).cast(pa.string())
        table = table.set_column(0, table.schema.field(0), renamed)
        sink = io.BytesIO()
        pq.write_table(table, sink, compression="zstd", store_schema=False)
        stem = self._relative(location).removesuffix("-deletes.parquet").removesuffix(".parquet")
        # The name of a file of ours: what is left of a relocation is removed as an orphan.
        unique = self._rand.getrandbits(48)
        folder = stem.rpartition("/")[0]
        path = f"{folder}/{unique:012x}-{len(self._deletes):08}-00000-deletes.parquet"
        write_whole(self._disk, path, [sink.getvalue()])
        return f"{self._warehouse}{path}", sink.tell()

    def _avro(self, location: str) -> tuple[list[Any], Callable[[list[Any]], tuple[str, int]]]:
        """Return the records of a file, and a function that writes changed ones as a new file."""
        import fastavro

        reader = fastavro.reader(io.BytesIO(self._read(location)))
        schema, codec = reader.writer_schema, reader.codec
        extra = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}

        def copy(records: list[Any]) -> tuple[str, int]:
            sink = io.BytesIO()
            fastavro.writer(sink, schema, records, codec=codec, metadata=extra)
            stem = self._relative(location).removesuffix(".avro")
            path = f"{stem}-{self._unique()}.avro"
            write_whole(self._disk, path, [sink.getvalue()])
            return f"{self._warehouse}{path}", sink.tell()

        return list(reader), copy

    def _unique(self) -> uuid.UUID:
        return uuid.UUID(int=self._rand.getrandbits(128), version=4)

    def _renamed(self, value: Any) -> Any:
        """Replace the old folder by the new one at the beginning of all texts."""
        if isinstance(value, str):
            return self._new(value)
        if isinstance(value, list):
            return [self._renamed(each) for each in value]
        if isinstance(value, dict):
            return {key: self._renamed(each) for key, each in value.items()}
        return value

    def _new(self, text: str) -> str:
        return f"{self._warehouse}{text.removeprefix(self._old)}" if self._is_old(text) else text

    def _is_old(self, text: str) -> bool:
        return text.startswith(self._old)

    def _relative(self, location: str) -> str:
        return location.removeprefix(self._old).removeprefix(self._warehouse)

    def _exists(self, location: str) -> bool:
        return (self._disk.root / self._relative(location)).is_file()

    def _read(self, location: str) -> bytes:
        file = self._disk.open(self._relative(location))
        try:
            return file.read(0, file.size())
        finally:
            file.close()
