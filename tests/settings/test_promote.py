"""Rules of promotion are refused if their columns could not be told from others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from frazil.config import InvalidConfig, load
from frazil.model.arrow import METRICS, TABLES
from frazil.query.plan.session import VIEWS
from frazil.settings.promote import PROMOTED_MAX, TAKEN, PromoteRule, promotions_of


def test_names_of_columns_are_taken() -> None:
    """Also those of views, and names that only other tables have."""
    for table, taken in TAKEN.items():
        own = {name for name in TABLES[table].names if not name.startswith("_")}
        assert own <= taken
        assert taken - own <= {"topic", "value"}
    words = {word.strip() for _, columns in VIEWS.values() for word in columns.split(",")}
    aliases = {word.rpartition(" AS ")[2] for word in words if " AS " in word}
    assert {name for name in aliases if name not in METRICS.names and ")" not in name} == {"value"}


def test_a_rule_names_its_column_by_the_key() -> None:
    rules = [
        PromoteRule(table="logs", key="http.route"),
        PromoteRule(table="logs", key="k8s.Cluster-Name", of="resource"),
        PromoteRule(table="logs", key="größe", type="DOUBLE", column="size"),
        PromoteRule(table="spans", key='o\'brien "x"', of="scope"),
    ]
    found = promotions_of(rules)
    names = [(c.name, c.of, c.key, c.kind) for c in found["logs"]]
    assert names == [
        ("http_route", "record", "http.route", "VARCHAR"),
        ("k8s_cluster_name", "resource", "k8s.Cluster-Name", "VARCHAR"),
        ("size", "record", "größe", "DOUBLE"),
    ]
    assert [column.name for column in found["spans"]] == ["o_brien__x_"]


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ([{"table": "spans", "key": "http.route"}], "has a column http_route already"),
        ([{"table": "metrics", "key": "value"}], 'such as "attr_value"'),
        ([{"table": "logs", "key": "名前"}], "set column to a name"),
        ([{"table": "logs", "key": "3d"}], "set column to a name"),
        ([{"table": "logs", "key": "_offset"}], "set column to a name"),
        ([{"table": "logs", "key": "x", "column": "X"}], "set column to a name"),
        ([{"table": "logs", "key": ""}], "empty"),
        ([{"table": "logs", "key": "\ud800"}], "not Unicode"),
        ([{"table": "logs", "key": "a"}] * 2, "promoted twice"),
        (
            [{"table": "logs", "key": "a"}, {"table": "logs", "key": "a", "of": "resource"}],
            "set column to another name",
        ),
        ([{"table": "logs", "key": f"k{n}"} for n in range(PROMOTED_MAX + 1)], "at most 60"),
        ([{"table": "logs", "key": "a", "type": "INT"}], "INT"),
        ([{"table": "dead_letters", "key": "a"}], "dead_letters"),
    ],
)
def test_rules_that_cannot_work_are_refused(
    rules: list[dict[str, str]], message: str, tmp_path: Path
) -> None:
    """The error says where the setting is from, and what to do."""
    with pytest.raises(InvalidConfig, match="FRAZIL_PROMOTE") as found:
        load(None, {}, environ={"FRAZIL_PROMOTE": json.dumps(rules)})
    assert message in str(found.value)
