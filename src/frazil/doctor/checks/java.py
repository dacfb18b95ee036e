"""Java, which Spark runs on: is it there, new enough, and made for this machine?"""

from __future__ import annotations

import platform
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from frazil.doctor.checks.processes import find_program
from frazil.doctor.context import CheckContext
from frazil.doctor.finding import Finding, Fix, do, failure, run, run_as_root, well

VERSION_LEAST = 17
ANSWER_S = 20
"""Java says its version within a tenth of a second; a machine may be busy."""
VERSION = re.compile(r'version "(?:1\.)?(\d+)[^"]*"')

INSTALL = {
    "debian": "apt-get install -y openjdk-17-jre-headless",
    "ubuntu": "apt-get install -y openjdk-21-jre-headless",
    "fedora": "dnf install -y java-21-openjdk-headless",
    "rhel": "dnf install -y java-21-openjdk-headless",
    "amzn": "dnf install -y java-21-amazon-corretto-headless",
    "alpine": "apk add openjdk21-jre-headless",
    "arch": "pacman -S --noconfirm jre21-openjdk-headless",
    "suse": "zypper install -y java-21-openjdk-headless",
}
"""Distribution to the command that installs one."""
DEBIAN_WITHOUT_17 = 13
"""From this version of Debian on there is no Java 17, and before it none that is newer."""


def check_java(case: CheckContext) -> Iterator[Finding]:
    """The Java that Spark would take: of JAVA_HOME if that is set, else of the path."""
    if not case.config.lake.enabled:
        return
    home = case.environment.get("JAVA_HOME")
    if home:
        program: Path | None = Path(home, "bin", "java")
        assert program is not None
        if not program.is_file():
            found = f"JAVA_HOME is {home}, where there is no bin/java"
            yield failure("java", found, _unset_or_install(case.environment))
            return
    else:
        program = find_program("java", case.environment)
    if program is None:
        yield failure("java", "there is none, and the lake needs it", install())
        return
    yield _judged(program, case.environment, home)


def _judged(program: Path, environment: Mapping[str, str], home: str | None) -> Finding:
    fix = _unset_or_install(environment) if home else install()
    try:
        said = subprocess.run(
            [program, "-version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=ANSWER_S,
            check=False,
        ).stdout.decode("utf-8", "replace")
    except OSError as error:
        made_for = f"{error.strerror}; this machine is {platform.machine()}"
        return failure("java", f"{program} cannot be run: {made_for}", fix)
    except subprocess.TimeoutExpired:
        return failure("java", f"{program} did not say its version in {ANSWER_S} s", fix)
    match = VERSION.search(said)
    if match is None:
        found = f"{program} does not say its version, but: {' '.join(said.split())[:200]}"
        return failure("java", found, fix)
    if int(match[1]) < VERSION_LEAST:
        found = f"{program} is version {match[1]}; Spark needs {VERSION_LEAST} or newer"
        return failure("java", found, fix)
    return well("java", f"{program}, {match[0]}")


def _unset_or_install(environment: Mapping[str, str]) -> Fix:
    """Another Java may be on the path already."""
    rest = {name: value for name, value in environment.items() if name != "JAVA_HOME"}
    program = find_program("java", rest)
    if program is not None and _judged(program, rest, None).level == "ok":
        return run("unset JAVA_HOME")
    return install()


def install(release: Path = Path("/etc/os-release")) -> Fix:
    """The command of this distribution, if it is a known one."""
    try:
        text = release.read_text()
    except OSError:
        text = ""
    facts = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', text, re.MULTILINE))
    names = [facts.get("ID", ""), *facts.get("ID_LIKE", "").split()]
    for name in names:
        if name not in INSTALL:
            continue
        command = INSTALL[name]
        number = facts.get("VERSION_ID", "").partition(".")[0]
        if name == facts.get("ID") == "debian" and int(number or 99) >= DEBIAN_WITHOUT_17:
            command = INSTALL["ubuntu"]
        return run_as_root(command)
    return do(f"install a Java of version {VERSION_LEAST} or newer, so that `java` is on the path")
