"""The test programs of librdkafka: each test that talks to a broker, in a process of its own.

Tests of librdkafka's own mock brokers are left out. The Java programs that it brings are compiled:
transactional producers and members of groups beside librdkafka's. With the headers of RapidJSON
four more tests are run.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from functools import partial
from pathlib import Path

from tests.live.kafka_port.jars import class_path
from tests.live.kafka_port.judges.build import built, run
from tests.live.kafka_port.judges.outcomes import JudgeTest, Outcome, Result

CRATE = "rdkafka-sys"
VERSION = "4.10.0"
"""Of the crate. It has librdkafka 2.12.1."""
MANIFEST = f"""\
[package]
name = "fetch"
version = "0.0.0"
edition = "2021"
[lib]
path = "lib.rs"
[dependencies]
{CRATE} = "={VERSION}"
"""
KAFKA = "4.2.1"
TEST_SECONDS_MAX = 1800
TIMEOUT_FACTOR = 3
"""Their timeouts are for a machine that does nothing else."""
TO_ONE_BROKER = (
    "rd_kafka_NewTopic_new(topicname, partition_cnt, replication_factor,",
    "rd_kafka_NewTopic_new(topicname, partition_cnt, RD_MIN(replication_factor, 1),",
)
"""What is changed in `test.c`: topics with three replicas have one, so that tests which are not
about replicas run with one broker."""
IN_PARTS = ("0081_admin",)
"""Tests whose parts are run and compared each for itself: they end at the first that fails."""
DENIES = ("0109_auto_create_topics", "0115_producer_auth", "0119_consumer_auth")
"""Tests that deny topics to everybody."""
LOCAL = ("TEST_F_LOCAL", "TEST_F_MANUAL")
"""Marks of tests that need no broker, or somebody who watches."""
OUTCOMES = {"PASSED": Outcome.PASSED, "SKIPPED": Outcome.SKIPPED}
TOOLS = {
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
}
"""Kafka's scripts that the tests call, and what is behind them."""
SCRIPT = """\
#!/bin/sh
exec java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$CLASSPATH:{class_path}" {words} "$@"
"""


def tests() -> list[JudgeTest]:
    """Return the tests that need a broker, in their order."""
    sources = built(f"{CRATE}-{VERSION}", _build) / "librdkafka" / "tests"
    listed = (sources / "test.c").read_text(encoding="utf-8").split("struct test tests[] = {")[1]
    found = []
    for entry in listed.split("{NULL}};")[0].split("_TEST(")[1:]:
        name = re.split(r"\W", entry, maxsplit=1)[0]
        if not any(mark in entry for mark in LOCAL):
            creates_topics = "noautocreate" not in entry
            for part in _parts(sources, name) if name in IN_PARTS else ("",):
                full_name = f"{name}/{part}" if part else name
                test = partial(_run, sources, full_name, creates_topics)
                found.append(
                    JudgeTest(
                        name=full_name,
                        run=test,
                        creates_topics=creates_topics,
                        denies=name in DENIES,
                    )
                )
    return found


def _parts(sources: Path, name: str) -> list[str]:
    """Return the functions of a test that are parts of their own."""
    (file,) = sources.glob(f"{name.replace('_', '-')}.c")
    functions = re.split(r"(?m)^static void\s+", file.read_text(encoding="utf-8"))[1:]
    return [each.split("(")[0].strip() for each in functions if "SUB_TEST" in each]


def _build(folder: Path) -> None:
    (folder / "Cargo.toml").write_text(MANIFEST, encoding="utf-8")
    (folder / "lib.rs").touch()
    run(["cargo", "vendor", "--quiet"], folder)
    (folder / "vendor" / CRATE / "librdkafka").rename(folder / "librdkafka")
    sources = folder / "librdkafka"
    for script in (*sources.glob("configure*"), *sources.rglob("*.sh"), *sources.rglob("*.py")):
        script.chmod(0o755)
    program = sources / "tests" / "test.c"
    text = program.read_text(encoding="utf-8")
    assert TO_ONE_BROKER[0] in text, f"{program} creates topics in another way"
    program.write_text(text.replace(*TO_ONE_BROKER), encoding="utf-8")
    run(["./configure", "--disable-gssapi", "--disable-curl"], sources)
    jobs = f"-j{os.cpu_count() or 1}"
    run(["make", jobs, "libs"], sources)
    run(["make", jobs, "-C", "tests", "build"], sources)
    _make_kafka_folder(folder / "kafka")
    environment = {"KAFKA_PATH": str(folder / "kafka")}
    run(["make", "-s", "-C", "tests", "java"], sources, environment)


def _make_kafka_folder(folder: Path) -> None:
    """Make what the tests take for a release of Kafka: its scripts and the jar of the client."""
    (folder / "bin").mkdir(parents=True)
    (folder / "libs").mkdir()
    jars = class_path(KAFKA)
    (client,) = (jar for jar in jars.split(":") if f"kafka-clients-{KAFKA}" in jar)
    (folder / "libs" / f"kafka-clients-{KAFKA}.jar").symlink_to(client)
    for name, words in {**TOOLS, "kafka-run-class": ""}.items():
        script = folder / "bin" / f"{name}.sh"
        script.write_text(SCRIPT.format(class_path=jars, words=words), encoding="utf-8")
        script.chmod(0o755)


def _run(sources: Path, name: str, creates_topics: bool, address: str) -> dict[str, Result]:
    return {name: _result(sources, name, creates_topics, address)}


def _result(sources: Path, full_name: str, creates_topics: bool, address: str) -> Result:
    name, _, part = full_name.partition("/")
    scenario = "default" if creates_topics else "noautocreate"
    with tempfile.TemporaryDirectory() as scratch:
        settings, written = Path(scratch) / "test.conf", Path(scratch) / "report.json"
        settings.write_text(
            f"bootstrap.servers={address}\n"
            "broker.address.family=v4\n"
            "test.topic.random=true\n"
            f"test.timeout.multiplier={TIMEOUT_FACTOR}\n",
            encoding="utf-8",
        )
        environment = {
            **os.environ,
            "TESTS": name,
            "SUBTESTS": f"{part}:" if part else "",
            "TEST_KAFKA_VERSION": KAFKA,
            "RDKAFKA_TEST_CONF": str(settings),
            "TEST_REPORT": str(written),
            "KAFKA_PATH": str(sources.parents[1] / "kafka"),
            "BROKERS": address,
            "LD_LIBRARY_PATH": "../src:../src-cpp",
        }
        try:
            done = subprocess.run(
                ["./test-runner", "-p1", "-L", "-s", scenario],
                cwd=sources,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=TEST_SECONDS_MAX,
                check=False,
            )
        except subprocess.TimeoutExpired as timeout:
            output = (timeout.stdout or b"").decode(errors="replace")
            return Result.of(Outcome.FAILED, f"{output}\nnot done in {TEST_SECONDS_MAX} s")
        output = done.stdout.decode(errors="replace")
        try:
            state = json.loads(written.read_bytes())["tests"][name]["state"]
        except (OSError, ValueError, KeyError):
            state = "no report"
    if done.returncode != 0 and state == "PASSED":
        state = "failed after it had passed"
    return Result.of(OUTCOMES.get(state, Outcome.FAILED), output)
