"""Statements about tables, from text to rows: stage, COPY, clone, clustering, drop. Tasks run
here."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from frazil.definitions import Audit, Definitions, StatementExecutor
from frazil.disk import RealDisk
from frazil.errors import Conflict, FrazilError, Malformed
from frazil.lake import LakeView
from frazil.load import Loader, register_loaded_tables
from frazil.model import SystemClock, SystemRand
from frazil.model.arrow import TABLES
from frazil.query import Engine
from frazil.settings import QueryConfig, StagesConfig
from tests.load.loading import CONFIG, log_loads, run_inline


def test_tables_by_statements(tmp_path: Path) -> None:
    """A clone stays readable when its source is dropped with all its files."""
    files = tmp_path / "in"
    files.mkdir()
    (files / "1.csv").write_text("a,b\n2,y\n1,x\n")
    data = tmp_path / "data"
    disk, clock = RealDisk(data), SystemClock()
    definitions = Definitions(disk)
    executor = StatementExecutor(definitions, Audit(disk, clock), clock)
    view = LakeView(CONFIG, data)
    lake: Any = SimpleNamespace(config=CONFIG, data_folder=data, view=view, session=None)
    with Engine.open(dict, TABLES, QueryConfig(), clock, view, definitions=definitions) as engine:
        loader = Loader(
            lake,
            engine,
            definitions,
            StagesConfig(roots=[str(tmp_path)]),
            {},
            clock=clock,
            rand=SystemRand(),
            log_loads=log_loads(data, lake),
            runner=lambda _: run_inline,
        )
        loader.register(executor)
        register_loaded_tables(executor, lake, engine, clock=clock, rand=SystemRand())

        def do(text: str) -> list[dict[str, Any]]:
            rows: list[dict[str, Any]] = executor.execute(text, who="test").to_pylist()
            return rows

        do(f"CREATE STAGE s URL='file://{files}'")
        do("COPY INTO t FROM @s")
        assert do("CREATE TABLE b CLONE t")[0]["status"].startswith("created table b with 2 rows")
        assert do("ALTER TABLE b CLUSTER BY (a)") == [{"status": "new files of b are sorted by a"}]
        do("ALTER TABLE b SET BLOOM (b)")
        for text, kind in {
            "CREATE TABLE b CLONE t": Conflict,
            "CREATE TABLE logs CLONE t": Conflict,
            "CREATE TABLE topic_x CLONE t": Conflict,
            "ALTER TABLE b CLUSTER BY (zzz)": Malformed,
            "CREATE TABLE c CLONE t FOR SYSTEM_TIME AS OF '2000-01-01'": FrazilError,
        }.items():
            with pytest.raises(kind):
                do(text)
        do("CREATE TABLE c CLONE t FOR SYSTEM_VERSION AS OF 'main'")
        do("DROP TABLE t PURGE")
        assert not list(data.rglob("t/data/**/*.parquet"))
        assert engine.sql("SELECT b FROM b ORDER BY a").fetchall() == [("x",), ("y",)]
        with pytest.raises(FrazilError, match="no table t"):
            engine.sql("SELECT * FROM t").fetchall()
        (files / "2.csv").write_text("a,b\n4,y\n3,x\n")
        do("COPY INTO b FROM @s")
        assert engine.sql("SELECT sum(a), count(*) FROM b").fetchall() == [(10, 4)]
    view.close()
