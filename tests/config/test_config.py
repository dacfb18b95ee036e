"""Settings: sources and their precedence, errors, redaction, reference and template."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from frazil import cli
from frazil.config import Config, effective_settings, load, read, reference, settings, template
from frazil.errors import Malformed
from frazil.settings import KafkaConfig, RedactRule

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each test in its own folder, without FRAZIL_ variables."""
    monkeypatch.chdir(tmp_path)
    for setting in settings():
        monkeypatch.delenv(setting.variable, raising=False)
    monkeypatch.delenv("FRAZIL_CONFIG", raising=False)


def write(text: str, name: str = "frazil.toml") -> str:
    Path(name).write_text(text, encoding="utf-8")
    return name


def test_without_sources_settings_are_the_defaults() -> None:
    assert load(None, {}, environ={}) == Config()


PRECEDENCE = [
    ("", {}, [], {}, 10 << 30, "default"),
    ("[log]\ndisk_bytes_max = 4_000_000_000", {}, [], {}, 4_000_000_000, "frazil.toml"),
    (
        "[log]\ndisk_bytes_max = 4_000_000_000",
        {"FRAZIL_LOG__DISK_BYTES_MAX": "5000000000"},
        [],
        {},
        5_000_000_000,
        "FRAZIL_LOG__DISK_BYTES_MAX",
    ),
    (
        "[log]\ndisk_bytes_max = 4_000_000_000",
        {"FRAZIL_LOG__DISK_BYTES_MAX": "5000000000"},
        ["log.disk_bytes_max=6000000000"],
        {},
        6_000_000_000,
        "flag",
    ),
    (
        "[log]\ndisk_bytes_max = 4_000_000_000",
        {"FRAZIL_LOG__DISK_BYTES_MAX": "5000000000"},
        ["log.disk_bytes_max=6000000000"],
        {"log": {"disk_bytes_max": 7_000_000_000}},
        7_000_000_000,
        "flag",
    ),
]


@pytest.mark.parametrize(("text", "environ", "sets", "flags", "value", "origin"), PRECEDENCE)
def test_the_stronger_source_wins(
    text: str,
    environ: dict[str, str],
    sets: list[str],
    flags: dict[str, Any],
    value: int,
    origin: str,
) -> None:
    """Flag, `--set`, environment, file, default; the origin says which."""
    write(text)
    loaded = read(None, flags, assignments=sets, environ=environ)
    (row,) = [each for each in effective_settings(loaded) if each.name == "log.disk_bytes_max"]
    assert (loaded.config.log.disk_bytes_max, row.value, str(row.origin)) == (value, value, origin)


def test_the_file_is_the_named_one_or_frazil_config_or_frazil_toml() -> None:
    write("data = 'current'")
    write("data = 'named'", "named.toml")
    write("data = 'other'", "other.toml")
    environ = {"FRAZIL_CONFIG": "other.toml"}
    assert load("named.toml", {}, environ=environ).data == "named"
    assert load(None, {}, environ=environ).data == "other"
    assert load(None, {}, environ={}).data == "current"


@pytest.mark.parametrize("name", ["absent.toml", ""])
def test_a_named_file_must_exist(name: str) -> None:
    with pytest.raises(Malformed, match="cannot be read"):
        load(None, {}, environ={"FRAZIL_CONFIG": name})


def test_the_default_environment_is_that_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRAZIL_DATA", "elsewhere")
    assert load(None, {}).data == "elsewhere"


TEXTS = [
    ("FRAZIL_DATA", "/var/x", "data", "/var/x"),
    ("FRAZIL_LOG__QUEUE_COUNT_MAX", "12_000", "log.queue_count_max", 12_000),
    ("FRAZIL_LOG__WHEN_FULL", "drop_oldest", "log.when_full", "drop_oldest"),
    ("FRAZIL_HOT__ENABLED", "false", "hot.enabled", False),
    ("FRAZIL_HOT__ENABLED", "True", "hot.enabled", True),
    (
        "FRAZIL_INGEST__CORS_ORIGINS",
        "http://a, http://b",
        "ingest.cors_origins",
        ("http://a", "http://b"),
    ),
    ("FRAZIL_INGEST__CORS_ORIGINS", "", "ingest.cors_origins", ()),
    ("FRAZIL_LAKE__TOPICS", '["a,b", "c"]', "lake.topics", ["a,b", "c"]),
    ("FRAZIL_INGEST__TOKEN_FILE", "tokens", "ingest.token_file", "tokens"),
    ("FRAZIL_INGEST__TOKEN_FILE", "none", "ingest.token_file", None),
    (
        "FRAZIL_LAKE__CATALOG",
        '{"uri": "u", "s3.x": "y"}',
        "lake.catalog",
        {"uri": "u", "s3.x": "y"},
    ),
    ("FRAZIL_LAKE__CATALOG__URI", "u", "lake.catalog", {"uri": "u"}),
    ("FRAZIL_LAKE__CATALOG__S3__PATH_STYLE", "u", "lake.catalog", {"s3.path-style": "u"}),
    ("FRAZIL_LAKE__CATALOG_NAME", "other", "lake.catalog_name", "other"),
    (
        "FRAZIL_REDACT",
        '[{"key": "user.email", "action": "hash"}]',
        "redact",
        (RedactRule(key="user.email", action="hash"),),
    ),
    ("FRAZIL_LAKE__KAFKA__BROKERS", "b:1", "lake.kafka", KafkaConfig(brokers="b:1")),
]


@pytest.mark.parametrize(("variable", "text", "name", "expected"), TEXTS)
def test_text_is_parsed_by_the_type_of_the_setting(
    variable: str, text: str, name: str, expected: object
) -> None:
    config: Any = load(None, {}, environ={variable: text})
    for key in name.split("."):
        config = getattr(config, key)
    assert config == expected


@pytest.mark.parametrize("setting", settings(), ids=lambda setting: setting.name)
def test_every_setting_can_be_set_as_text(setting: Any) -> None:
    """Its default, written as text, is the default again."""
    if setting.default is None:
        return
    text = (
        json.dumps(setting.default)
        if setting.kind.base in ("list", "map", "rules", "switch", "number")
        else str(setting.default)
    )
    base = {"lake": {"kafka": {"brokers": "b:1"}}}
    assert load(None, base, environ={setting.variable: text}) == load(None, base, environ={})
    assert load(None, base, assignments=[f"{setting.name}={text}"], environ={}) == load(
        None, base, environ={}
    )


def test_maps_are_merged_by_entry() -> None:
    """For each entry the stronger source wins."""
    write('[lake.catalog]\nuri = "file"\ntype = "rest"\n"s3.region" = "x"\n')
    config = load(
        None,
        {"lake": {"catalog": {"uri": "flag"}}},
        assignments=["lake.catalog.s3.region=set"],
        environ={"FRAZIL_LAKE__CATALOG": '{"uri": "environment", "token": "t"}'},
    )
    assert config.lake.catalog == {
        "uri": "flag",
        "type": "rest",
        "s3.region": "set",
        "token": "t",
    }


def test_none_unsets_what_the_file_sets() -> None:
    write('[lake]\nwarehouse = "/tables"\n')
    assert load(None, {}, environ={"FRAZIL_LAKE__WAREHOUSE": "none"}).lake.warehouse is None


INVALID_FILES = [
    (
        "# first\n[log]\nsegment_byte_max = 1",
        "log.segment_byte_max is not a setting; did you mean log.segment_bytes_max?",
    ),
    ("log.when_ful = 1", "log.when_ful is not a setting; did you mean log.when_full?"),
    ("[log]\ngrpc_port = 1", "log.grpc_port is not a setting; did you mean ingest.grpc_port?"),
    ("grpc_port = 1", "grpc_port is not a setting; did you mean ingest.grpc_port?"),
    ("dataa = '1'", "dataa is not a setting; did you mean data?"),
    ("[xyzzy]", "xyzzy is not a table of settings"),
    (
        "[lake.catalogue]",
        "lake.catalogue is not a table of settings; did you mean lake.catalog?",
    ),
    ("log = 5", "log is a table of settings, not a value"),
    ("[data]\nx = 1", "data is {'x': 1}; it must be a string"),
    ("data = 7", "data is 7; it must be a string"),
    ("[log]\nqueue_count_max = 1.5", "log.queue_count_max is 1.5; it must be an integer"),
    ("[log]\nqueue_count_max = true", "log.queue_count_max is true; it must be an integer"),
    ("[hot]\nenabled = 1", "hot.enabled is 1; it must be true or false"),
    (
        '[log]\nwhen_full = "explode"',
        'log.when_full is \'explode\'; it must be "backpressure" or "drop_oldest"',
    ),
    ('[lake]\ntopics = "a"', "lake.topics is 'a'; it must be a list of strings"),
    ("[lake]\ntopics = [\n  1,\n]", "lake.topics is [1]; it must be a list of strings"),
    (
        "[lake]\ncatalog = 'x'",
        "lake.catalog is invalid; it must be a table of strings",
    ),
    (
        "[lake.catalog]\na = 'b'\n's3.port' = 9000",
        "lake.catalog.s3.port is 9000; it must be a string, in quotes",
    ),
    (
        "[lake.catalog]\ntoken = 9000",
        "lake.catalog.token is not a string; it must be a string, in quotes",
    ),
    (
        "[lake.catalog]\ns3.region = 'x'",
        'lake.catalog.s3 is a table; quote a name that contains dots: "s3.…"',
    ),
    ("\n[lake.kafka]", "lake.kafka is set, but lake.kafka.brokers is missing"),
]


@pytest.mark.parametrize(("text", "expected"), INVALID_FILES)
def test_an_invalid_file_is_rejected(text: str, expected: str) -> None:
    """The error has the file, the key and the name that was probably meant."""
    write(text)
    with pytest.raises(Malformed) as caught:
        load(None, {}, environ={})
    assert str(caught.value) == f"frazil.toml: {expected}"


INVALID_TEXTS = [
    (
        "FRAZIL_LOG__DISK_BYTE_MAX",
        "1",
        " is not a setting; did you mean FRAZIL_LOG__DISK_BYTES_MAX?",
    ),
    (
        "FRAZIL_LOG_DISK_BYTES_MAX",
        "1",
        " is not a setting; did you mean FRAZIL_LOG__DISK_BYTES_MAX?",
    ),
    ("FRAZIL_INGEST_HTTP_PORT", "1", " is not a setting; did you mean FRAZIL_INGEST__HTTP_PORT?"),
    ("FRAZIL_LOG__GRPC_PORT", "1", " is not a setting; did you mean FRAZIL_INGEST__GRPC_PORT?"),
    ("FRAZIL_DTA", "1", " is not a setting; did you mean FRAZIL_DATA?"),
    ("FRAZIL_CONFIGS", "1", " is not a setting; did you mean FRAZIL_CONFIG?"),
    ("FRAZIL_X__Y", "1", " is not a setting"),
    ("FRAZIL_LAKE__KAFKA", "1", " is not a setting; did you mean FRAZIL_LAKE__KAFKA__BROKERS?"),
    ("FRAZIL_LOG__QUEUE_COUNT_MAX", "", ": log.queue_count_max is ''; it must be an integer"),
    (
        "FRAZIL_LOG__QUEUE_COUNT_MAX",
        "64MiB",
        ": log.queue_count_max is '64MiB'; it must be an integer",
    ),
    (
        "FRAZIL_LOG__QUEUE_COUNT_MAX",
        "none",
        ": log.queue_count_max is 'none'; it must be an integer",
    ),
    ("FRAZIL_HOT__ENABLED", "yes", ": hot.enabled is 'yes'; it must be true or false"),
    ("FRAZIL_LAKE__TOPICS", "[1]", ": lake.topics is '[1]'; it must be a list of strings"),
    ("FRAZIL_LAKE__TOPICS", "[", ": lake.topics is '['; it must be a list of strings"),
    (
        "FRAZIL_LAKE__CATALOG",
        '{"token": 7, "a": "secret"}',
        ": lake.catalog is invalid; it must be a table of strings",
    ),
    ("FRAZIL_INGEST__TOKEN_FILE", "", ": ingest.token_file is empty; set it, or remove it"),
]


@pytest.mark.parametrize(("variable", "text", "expected"), INVALID_TEXTS)
def test_an_invalid_variable_is_rejected(variable: str, text: str, expected: str) -> None:
    with pytest.raises(Malformed) as caught:
        load(None, {}, environ={variable: text})
    assert str(caught.value) == f"environment variable {variable}{expected}"


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("FRAZIL_URL", "http://127.0.0.1:4320"),
        ("FRAZIL_TOKEN", "0123456789abcdef"),
        ("FRAZIL_SERVICE_HOST", "10.0.0.1"),
        ("FRAZIL_SERVICE_PORT", "4317"),
        ("FRAZIL_PORT", "tcp://10.0.0.1:4317"),
        ("FRAZIL_INGEST_HTTP_PORT", "tcp://10.0.0.1:4317"),
        ("FRAZIL_PORT_4317_TCP_ADDR", "10.0.0.1"),
        ("FRAZIL_KAFKA_PASSWORD", "x"),
        ("FRAZILLOG__X", "x"),
    ],
)
def test_foreign_variables_are_ignored(variable: str, text: str) -> None:
    """Those for clients, those of Kubernetes for a service of our name, and the user's."""
    assert load(None, {}, environ={variable: text}) == Config()


@pytest.mark.parametrize(
    ("assignment", "expected"),
    [
        (
            "log.disk_byte_max=1",
            "log.disk_byte_max is not a setting; did you mean log.disk_bytes_max?",
        ),
        ("log.queue_count_max=x", "log.queue_count_max is 'x'; it must be an integer"),
        (
            "log.queue_count_max",
            "log.queue_count_max has no value; write log.queue_count_max=VALUE",
        ),
        ("log=1", "log is a table of settings, not a value"),
        ("=1", " is not a setting"),
    ],
)
def test_an_invalid_assignment_is_rejected(assignment: str, expected: str) -> None:
    with pytest.raises(Malformed) as caught:
        load(None, {}, assignments=[assignment], environ={})
    name = assignment.partition("=")[0]
    assert str(caught.value) == f"flag --set {name}".rstrip() + f": {expected}"


def test_all_problems_are_reported_at_once() -> None:
    write("[log]\nsegment_byte_max = 1\nwhen_full = 1\n[ingset]\n")
    with pytest.raises(Malformed) as caught:
        load(None, {"hots": 1}, assignments=["a.b=1"], environ={"FRAZIL_X__Y": ""})
    assert [line.partition(":")[0] for line in str(caught.value).splitlines()] == [
        "frazil.toml",
        "frazil.toml",
        "frazil.toml",
        "environment variable FRAZIL_X__Y is not a setting",
        "flag --set a.b",
        "flag",
    ]


@pytest.mark.parametrize(
    ("text", "environ", "expected"),
    [
        (
            "[log]\nbatch_bytes_max = 1048576",
            {},
            "frazil.toml: ingest.body_bytes_max (20971520) does not fit into "
            "log.batch_bytes_max (1048576); lower the first or raise the second",
        ),
        (
            "[log]\nbatch_bytes_max = 1048576",
            {"FRAZIL_INGEST__BODY_BYTES_MAX": "2000000"},
            "ingest.body_bytes_max (2000000) does not fit into log.batch_bytes_max (1048576); "
            "lower the first or raise the second (log.batch_bytes_max is from frazil.toml; "
            "ingest.body_bytes_max is from environment variable FRAZIL_INGEST__BODY_BYTES_MAX)",
        ),
        (
            '[lake.spark]\n"spark.x" = "1"\n"spark.master" = "local"',
            {},
            "frazil.toml: lake.spark contains spark.master; set lake.master instead",
        ),
        ('data = ""', {}, "frazil.toml: data is empty; it must be a folder"),
    ],
)
def test_contradicting_values_have_their_origins(
    text: str, environ: dict[str, str], expected: str
) -> None:
    write(text)
    with pytest.raises(Malformed) as caught:
        load(None, {}, environ=environ)
    assert str(caught.value) == expected


@pytest.mark.parametrize("content", [b"a = \xff", b"a = ", b"[a\n"])
def test_invalid_toml_is_rejected(content: bytes) -> None:
    Path("frazil.toml").write_bytes(content)
    with pytest.raises(Malformed, match=r"frazil\.toml is not TOML: "):
        load(None, {}, environ={})


SECRETS = """
[lake.catalog]
uri = "postgresql://frazil:hush@db.example/catalog"
credential = "client:hush"
"s3.secret-access-key" = "hush"
"s3.region" = "eu"
[lake.kafka]
brokers = "b:1"
[lake.kafka.client]
"sasl.username" = "frazil"
"sasl.password" = "env:PASSWORD"
"ssl.key.password" = "file:password"
"""


def test_secrets_are_redacted() -> None:
    """References are not secret."""
    write(SECRETS)
    write("hush\n", "password")
    loaded = read(None, {}, environ={"PASSWORD": "hush"})
    rows = {
        each.name: each.value
        for each in effective_settings(loaded)
        if each.origin.source != "default"
    }
    assert rows == {
        "lake.catalog.uri": "postgresql://frazil:***@db.example/catalog",
        "lake.catalog.credential": "***",
        "lake.catalog.s3.secret-access-key": "***",
        "lake.catalog.s3.region": "eu",
        "lake.kafka.brokers": "b:1",
        "lake.kafka.client.sasl.username": "frazil",
        "lake.kafka.client.sasl.password": "env:PASSWORD",
        "lake.kafka.client.ssl.key.password": "file:password",
    }


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("postgresql://db.example:5432/x", "postgresql://db.example:5432/x"),
        ("postgresql://me@db.example/x", "postgresql://me@db.example/x"),
        ("postgresql://me:hu/s@h@db.example/x", "postgresql://me:***@db.example/x"),
        (
            "postgresql://db/x?user=me&password=hush&ssl=1",
            "postgresql://db/x?user=me&password=***&ssl=1",
        ),
        ("s3://bucket/folder", "s3://bucket/folder"),
        ("/var/lib/tables", "/var/lib/tables"),
    ],
)
def test_passwords_in_uris_are_redacted(uri: str, expected: str) -> None:
    loaded = read(None, {"lake": {"warehouse": uri}}, environ={})
    (row,) = [each for each in effective_settings(loaded) if each.name == "lake.warehouse"]
    assert row.value == expected


def test_references_to_secrets_are_resolved() -> None:
    """Only in secret entries: elsewhere the text may be literal."""
    write(SECRETS + '[lake.spark]\n"spark.jars" = "file:/opt/a.jar"\n')
    write("hush\n", "password")
    config = load(None, {}, environ={"PASSWORD": "whisper"})
    assert config.lake.kafka is not None
    assert config.lake.kafka.client["sasl.password"] == "whisper"
    assert config.lake.kafka.client["ssl.key.password"] == "hush"
    assert config.lake.spark == {"spark.jars": "file:/opt/a.jar"}


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, "toml: lake.kafka.client.sasl.password is env:PASSWORD, but the environment has no"),
        ({"PASSWORD": "x"}, "toml: .* is file:password, which cannot be read: No such file"),
    ],
)
def test_unresolved_references_are_rejected(environ: dict[str, str], expected: str) -> None:
    write(SECRETS)
    with pytest.raises(Malformed, match=expected):
        load(None, {}, environ=environ)


def uncommented(text: str) -> str:
    """Uncomment each default."""
    lines = text.splitlines()
    return "\n".join(
        line[1:] if line[:1] == "#" and line[1:2].isalpha() else line for line in lines
    )


def test_the_template_sets_nothing() -> None:
    """Neither as it is, nor with every default uncommented."""
    assert load(write(template()), {}, environ={}) == Config()
    loaded = read(write(uncommented(template())), {}, environ={})
    assert loaded.config == Config()
    have = [setting.keys for setting in settings() if setting.default not in (None, {})]
    assert list(loaded.values) == [keys for keys in have if keys[:2] != ("lake", "kafka")]


def test_the_template_has_every_setting() -> None:
    """Settings without a default are examples, which are TOML when uncommented."""
    lines = uncommented(template()).splitlines()
    text = "\n".join(line.removeprefix("#   ") for line in lines)
    tree = tomllib.loads(text)
    for setting in settings():
        below: Any = tree
        for key in setting.keys:
            below = below[key]


def test_every_setting_has_a_description() -> None:
    """One or two sentences; the template and docs/configuration.md contain it."""
    missing = [setting.name for setting in settings() if not setting.description.endswith(".")]
    assert not missing


def test_the_reference_page_is_up_to_date() -> None:
    """python -m frazil config reference > docs/configuration.md"""
    page = ROOT / "docs" / "configuration.md"
    assert page.read_text(encoding="utf-8") == reference()


def test_init_keeps_an_existing_file_unless_forced(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["init"]) == 0
    assert load(None, {}, environ={}) == Config()
    write("data = 'mine'")
    assert cli.main(["init"]) == 2
    assert "frazil.toml exists" in capsys.readouterr().err
    assert load(None, {}, environ={}).data == "mine"
    assert cli.main(["init", "--force", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["settings"] == len(settings())
    assert load(None, {}, environ={}) == Config()
    assert sorted(path.name for path in Path().iterdir()) == ["frazil.toml"]


def test_show_prints_toml_that_gives_the_same_settings(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write('[lake.catalog]\n"s3.region" = "a\\"b"\n[log]\nwhen_full = "drop_oldest"\n')
    arguments = ["config", "show", "--origin", "--data", "d", "--set", "lake.kafka.brokers=b:1"]
    assert cli.main(arguments) == 0
    out = capsys.readouterr().out
    assert 'log.when_full = "drop_oldest"' in out
    assert "# frazil.toml\n" in out
    expected = load(None, {"data": "d", "lake": {"kafka": {"brokers": "b:1"}}})
    assert load(write(out, "shown.toml"), {}) == expected


def test_show_changed_omits_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["config", "show", "--changed", "--json", "--set", "hot.enabled=false"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "name": "hot.enabled",
        "value": False,
        "origin": "flag",
    }


def test_an_invalid_set_flag_exits_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything is opened."""
    assert cli.main(["up", "--data", "d", "--set", "log.nothing=1"]) == 2
    assert (
        capsys.readouterr().err == "frazil: flag --set log.nothing: log.nothing is not a setting\n"
    )
    assert not Path("d").exists()


@pytest.mark.parametrize("flag", [["--config", "x.toml"], ["--set", "hot.enabled=false"]])
def test_settings_flags_need_a_data_folder(
    flag: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["flush", "--url", "http://127.0.0.1:1", *flag]) == 2
    assert "apply to a data folder; name it with --data" in capsys.readouterr().err


def test_a_closed_pipe_prints_no_error() -> None:
    """As in `frazil config show | head -1`."""
    with subprocess.Popen(
        [sys.executable, "-m", "frazil", "config", "reference"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert process.returncode == 1
