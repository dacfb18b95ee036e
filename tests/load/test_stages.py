"""Stages: nothing leads out of a root, and what is read is what was listed."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from frazil.definitions import CreateStage
from frazil.errors import Conflict, FrazilError, Malformed, Unknown
from frazil.load.stages.location import checked_path, parse_location
from frazil.load.stages.stage import open_stage, staged_files, upload
from frazil.settings import StagesConfig
from tests.load.loading import Loading


@pytest.mark.parametrize(
    ("url", "root"),
    [
        ("s3://bucket/inside/a", "s3://bucket/inside"),
        ("s3://bucket/inside", "s3://bucket/inside/"),
        ("file:///data/in/a/", "/data/in"),
        ("https://host:8443/x/y", "https://host:8443/x"),
    ],
)
def test_a_stage_below_a_root(url: str, root: str) -> None:
    stage = open_stage(CreateStage(name="s", url=url), StagesConfig(roots=[root]), {})
    assert stage.location.is_below(stage.root)


@pytest.mark.parametrize(
    "url",
    [
        "s3://bucket/inside-not",
        "s3://other/inside",
        "gs://bucket/inside",
        "s3://bucket",
        "file:///bucket/inside",
    ],
)
def test_a_stage_elsewhere_is_unknown(url: str) -> None:
    with pytest.raises(Unknown, match=r"stages\.roots"):
        config = StagesConfig(roots=["s3://bucket/inside"])
        open_stage(CreateStage(name="s", url=url), config, {})


@pytest.mark.parametrize(
    "url",
    [
        "s3://bucket/inside/../outside",
        "s3://bucket/inside/./x",
        "s3://bucket/inside//x",
        "s3://user:password@bucket/inside",
        "https://host/x?query=1",
        "https://host/%2e%2e/x",
        "file://host/etc",
        "ftp://host/x",
        "data:text/plain,x",
        "s3://",
        "s3://bucket/in\nside",
        "s3://bucket/in\\..\\x",
    ],
)
def test_an_unsafe_url_is_malformed(url: str) -> None:
    with pytest.raises(Malformed):
        parse_location(url)


@pytest.mark.parametrize("path", ["..", "a/../b", "a//b", "./a", "a\\b", "a\x00b", "a/.."])
def test_an_unsafe_path_is_malformed(path: str) -> None:
    with pytest.raises(Malformed):
        checked_path(path)


def test_links_are_not_followed(tmp_path: Path) -> None:
    loading = Loading(tmp_path)
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key.ndjson").write_bytes(b'{"a":1}\n')
    loading.put("a.ndjson", b'{"a":1}\n')
    (loading.files / "link.ndjson").symlink_to(secret / "key.ndjson")
    (loading.files / "folder").symlink_to(secret)
    assert [file.path for file in staged_files(loading.stage, "", files_max=9)] == ["a.ndjson"]
    for name in ("link.ndjson", "folder/key.ndjson"):
        with pytest.raises(FrazilError):
            staged_files(loading.stage, "", files=[name], files_max=9)
    with pytest.raises(FrazilError):
        upload(loading.stage, "folder/new.ndjson", [b"x"], overwrite=True)
    assert not (secret / "new.ndjson").exists()


def test_upload_appears_as_a_whole_and_once(tmp_path: Path) -> None:
    loading = Loading(tmp_path)
    file = upload(loading.stage, "deep/a.csv", [b"a\n", b"1\n"], overwrite=False)
    assert (file.path, file.size_bytes) == ("deep/a.csv", 4)
    with pytest.raises(Conflict):
        upload(loading.stage, "deep/a.csv", [b"b\n"], overwrite=False)
    assert (loading.files / "deep/a.csv").read_bytes() == b"a\n1\n"
    assert sorted(path.name for path in (loading.files / "deep").iterdir()) == ["a.csv"]


def test_two_uploads_of_one_name_do_not_mix(tmp_path: Path) -> None:
    """The second one is refused while the first one runs; a crash leaves nothing that harms."""
    loading = Loading(tmp_path)

    def chunks() -> Iterator[bytes]:
        yield b"first"
        with pytest.raises(Conflict, match="is being uploaded"):
            upload(loading.stage, "a.csv", [b"second"], overwrite=True)
        yield b" whole"

    upload(loading.stage, "a.csv", chunks(), overwrite=False)
    assert (loading.files / "a.csv").read_bytes() == b"first whole"
    # As after a crash between the two names of a file.
    (loading.files / ".a.csv.upload").hardlink_to(loading.files / "a.csv")
    with pytest.raises(RuntimeError):
        upload(loading.stage, "a.csv", failing(), overwrite=True)
    assert (loading.files / "a.csv").read_bytes() == b"first whole"
    upload(loading.stage, "a.csv", [b"new"], overwrite=True)
    assert (loading.files / "a.csv").read_bytes() == b"new"
    assert [path.name for path in loading.files.iterdir()] == ["a.csv"]


def failing() -> Iterator[bytes]:
    yield b"some"
    raise RuntimeError


def test_a_file_that_changed_is_refused(tmp_path: Path) -> None:
    loading = Loading(tmp_path)
    path = loading.put("a.ndjson", b'{"a":1}\n')
    (file,) = staged_files(loading.stage, "", files_max=9)
    path.write_bytes(b'{"a":2222}\n')
    with pytest.raises(Conflict, match=r"a\.ndjson was overwritten"):
        loading.stage.open().open(file)


@contextmanager
def web_server(folder: Path, redirects: Mapping[str, str]) -> Iterator[int]:
    """A web server over a folder; yields its port."""

    class Handler(SimpleHTTPRequestHandler):
        def send_head(self) -> Any:
            if self.path not in redirects:
                return super().send_head()
            self.send_response(302)
            self.send_header("Location", redirects[self.path])
            self.end_headers()
            return None

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def test_a_web_server(tmp_path: Path) -> None:
    """Named files are read; a redirect, which may lead anywhere, is not followed."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a b.csv").write_bytes(b"x\n1\n")
    (tmp_path / "secret").write_bytes(b"secret")
    with web_server(tmp_path, {"/in/leads": "/secret"}) as port:
        url = f"http://127.0.0.1:{port}/in/"
        stage = open_stage(CreateStage(name="s", url=url), StagesConfig(roots=[url]), {})
        (file,) = staged_files(stage, "", files=["a b.csv"], files_max=10)
        with stage.open().open(file) as stream:
            assert stream.read() == b"x\n1\n"
        with pytest.raises(Malformed, match="redirects to /secret"):
            stage.open().head("leads")
        with pytest.raises(Unknown, match="does not exist"):
            stage.open().head("nothing")
        with pytest.raises(Malformed, match="cannot list"):
            staged_files(stage, "", files_max=10)
        (tmp_path / "in" / "a b.csv").write_bytes(b"x\n1\n2\n")
        with pytest.raises(Conflict, match="was overwritten"):
            stage.open().open(file)
