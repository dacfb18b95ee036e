"""Every store, format and codec: what COPY INTO loads is what pyarrow and fastavro read.

python -m tests.load.matrix              all of it; one line of JSON
python -m tests.load.matrix --rows 500 local s3
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from frazil.definitions import CreateStage
from frazil.load import Stage, open_stage
from frazil.settings import StagesConfig
from tests.live.azure.server import ACCOUNT, KEY, azure_server
from tests.live.gcs.server import gcs_server
from tests.live.s3.server import KEY_ID, SECRET, S3Server
from tests.load.loading import Loading
from tests.load.staged_formats import FormatCase, cases, same_rows
from tests.load.test_stages import web_server

ROWS = 2000
BUCKET = "files"


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """A running store."""

    stage: Stage
    put: Callable[[str, bytes], None]
    can_list: bool = True


@contextmanager
def local(folder: Path) -> Iterator[Store]:
    stage = _stage(f"file://{folder}", {})
    yield Store(stage=stage, put=lambda path, data: _put(stage, path, data))


@contextmanager
def s3(folder: Path) -> Iterator[Store]:
    with S3Server(folder) as server:
        server.make_bucket(BUCKET)
        options = {
            "endpoint": server.endpoint,
            "access_key_id": KEY_ID,
            "secret_access_key": SECRET,
            "region": "us-east-1",
            "allow_http": "true",
        }
        stage = _stage(f"s3://{BUCKET}/in", options)
        yield Store(stage=stage, put=lambda path, data: _put(stage, path, data))


@contextmanager
def azure(folder: Path) -> Iterator[Store]:
    with azure_server(folder, BUCKET) as endpoint:
        options = {
            "account_name": ACCOUNT,
            "account_key": KEY,
            "endpoint": endpoint,
            "allow_http": "true",
        }
        stage = _stage(f"az://{BUCKET}/in", options)
        yield Store(stage=stage, put=lambda path, data: _put(stage, path, data))


@contextmanager
def gcs(folder: Path) -> Iterator[Store]:
    with gcs_server(folder) as server:
        server.make_bucket(BUCKET)
        options = {"service_account_key": server.account_key, "allow_http": "true"}
        stage = _stage(f"gs://{BUCKET}/in", options)
        yield Store(stage=stage, put=lambda path, data: server.put(BUCKET, f"in/{path}", data))


@contextmanager
def web(folder: Path) -> Iterator[Store]:
    def put(path: str, data: bytes) -> None:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)

    with web_server(folder, {}) as port:
        yield Store(stage=_stage(f"http://127.0.0.1:{port}", {}), put=put, can_list=False)


STORES: dict[str, Callable[[Path], AbstractContextManager[Store]]] = {
    "local": local,
    "s3": s3,
    "azure": azure,
    "gcs": gcs,
    "web": web,
}


@contextmanager
def opened(name: str, folder: Path) -> Iterator[Store]:
    """Open a store over an empty folder. Skips the test where its server cannot be had."""
    folder.mkdir(parents=True)
    with STORES[name](folder) as store:
        yield store


def _stage(url: str, options: dict[str, str]) -> Stage:
    connections = {f"tested.{name}": value for name, value in options.items()}
    definition = CreateStage(name="s", url=url, connection="tested" if options else "")
    return open_stage(definition, StagesConfig(roots=[url]), connections)


def _put(stage: Stage, path: str, data: bytes) -> None:
    stage.open().put(path, [data], overwrite=True)


def failures_of(store: Store, chosen: Iterable[FormatCase], folder: Path, rows: int) -> list[str]:
    """Load each file from a store and return those that are not loaded as others read them."""
    loading = Loading(folder)
    loading.stage = store.stage
    failures = []
    for case in chosen:
        data = case.encode(rows)
        store.put(f"{case.folder}/{case.name}", data)
        table = f"{case.format}_{case.codec}"
        files = "" if store.can_list else f" FILES=('{case.name}')"
        try:
            result = loading.copy(f"COPY INTO {table} FROM @s/{case.folder}/{files}")
            assert result.row_count == rows, f"{result.row_count} rows"
            loaded = loading.table(table)
            assert same_rows(loaded, case.read_by_others(data)), "other rows"
        except Exception as error:  # noqa: BLE001 whatever fails is a failure of this cell
            failures.append(f"{case.format} {case.codec}: {error}")
    return failures


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.load.matrix")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("stores", nargs="*", choices=[*STORES, []], help="default: all")
    options = parser.parse_args(words)
    begin = time.monotonic()
    chosen = list(cases())
    tested: list[str] = []
    skipped: dict[str, str] = {}
    failed: list[str] = []
    with tempfile.TemporaryDirectory() as root:
        for name in options.stores or STORES:
            try:
                with opened(name, Path(root, name)) as store:
                    found = failures_of(store, chosen, Path(root, f"{name}-loads"), options.rows)
            except pytest.skip.Exception as reason:
                skipped[name] = str(reason)
                continue
            tested.append(name)
            failed += [f"{name} {each}" for each in found]
    answer = {
        "stores": tested,
        "files": len(tested) * len(chosen),
        "rows": options.rows,
        "failed": failed,
        "skipped": skipped,
        "seconds": round(time.monotonic() - begin, 1),
    }
    sys.stdout.write(f"{json.dumps(answer)}\n")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
