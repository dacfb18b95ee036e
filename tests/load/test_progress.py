"""Progress of a load: what its tasks have counted, in this process and in others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from frazil.lake import JobGroup
from frazil.load import LoadProgress, WorkDone
from frazil.load.copy.progress import ProgressSlot, TaskProgress
from frazil.load.stages.staged_file import StagedFile
from frazil.model import SystemClock
from tests.load.loading import Loading

FILE = StagedFile(path="a", uri="file:///a", etag="1", size_bytes=100, time_ms=0)
COUNTING = """
import sys
from frazil.load.copy.progress import ProgressSlot, TaskProgress
from frazil.model import SystemClock
TaskProgress(ProgressSlot(folder=sys.argv[1], name=sys.argv[2]), SystemClock()).reading(7, 2)
"""


def test_tasks_count_in_their_own_places(tmp_path: Path) -> None:
    progress = LoadProgress(group=JobGroup("one"), folder=tmp_path)
    progress.begin("loading files")
    assert progress.done() == WorkDone()
    for index in (0, 2):
        slot = progress.slot(index)
        assert slot is not None
        task = TaskProgress(slot, SystemClock())
        task.reading(50, 5)
        task.finished(FILE, 10)
        task.finished(FILE, 10)
        task.close()
    last = progress.slot(3)
    assert last is not None
    subprocess.run([sys.executable, "-c", COUNTING, last.folder, last.name], check=True)
    assert progress.done() == WorkDone(file_count=4, size_bytes=407, row_count=42)
    progress.begin("another step")
    assert progress.done() == WorkDone()
    assert list(tmp_path.iterdir()) == []


def test_a_task_that_cannot_count_does_not_fail(tmp_path: Path) -> None:
    slot = ProgressSlot(folder=str(tmp_path / "nowhere"), name="x")
    for each in (slot, None):
        task = TaskProgress(each, SystemClock())
        task.finished(FILE, 10)
        task.finished(FILE, 10)
        task.close()
    assert not (tmp_path / "nowhere").exists()


def test_a_load_counts_files_bytes_and_rows(tmp_path: Path) -> None:
    loading = Loading(tmp_path)
    folder = tmp_path / "scratch"
    folder.mkdir()
    loading.progress = LoadProgress(group=JobGroup("test"), folder=folder)
    data = b'{"a":1}\n' * 1000
    for name in "abc":
        loading.put(f"{name}.ndjson", data)
    loading.copy("COPY INTO t FROM @s FILE_FORMAT=(TYPE=NDJSON)")
    assert loading.progress.step == "committing"
    assert loading.progress.file_count == 3 and loading.progress.size_bytes == 3 * len(data)
    assert loading.progress.done() == WorkDone(
        file_count=3, size_bytes=3 * len(data), row_count=3000
    )
    loading.progress.remove()
    assert list(folder.iterdir()) == []
