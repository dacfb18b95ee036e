"""Java, for Spark: installed, new enough, and for this architecture."""

from __future__ import annotations

import platform
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from frazil.doctor.checks.processes import find_program
from frazil.doctor.context import CheckContext
from frazil.doctor.finding import Finding, Fix, do, failure, ok, run, run_as_root

VERSION_MIN = 17
TIMEOUT_S = 20
"""Java prints its version within 0.1 s; the machine may be busy."""
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
"""Distribution -> install command."""
DEBIAN_WITHOUT_17 = 13
"""First Debian version without Java 17; earlier ones have nothing newer."""


def check_java(context: CheckContext) -> Iterator[Finding]:
    """Check the Java that Spark would use: of JAVA_HOME if set, else of PATH."""
    if not context.config.lake.enabled:
        return
    home = context.environment.get("JAVA_HOME")
    if home:
        program: Path | None = Path(home, "bin", "java")
        assert program is not None
        if not program.is_file():
            text = f"JAVA_HOME is {home}, which has no bin/java"
            yield failure("java", text, _unset_or_install(context.environment))
            return
    else:
        program = find_program("java", context.environment)
    if program is None:
        yield failure("java", "not installed; the lake needs it", install())
        return
    yield _check_version(program, context.environment, home)


def _check_version(program: Path, environment: Mapping[str, str], home: str | None) -> Finding:
    fix = _unset_or_install(environment) if home else install()
    try:
        output = subprocess.run(
            [program, "-version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TIMEOUT_S,
            check=False,
        ).stdout.decode("utf-8", "replace")
    except OSError as error:
        reason = f"{error.strerror}; this machine is {platform.machine()}"
        return failure("java", f"{program} cannot be run: {reason}", fix)
    except subprocess.TimeoutExpired:
        return failure("java", f"{program} -version did not finish in {TIMEOUT_S} s", fix)
    match = VERSION.search(output)
    if match is None:
        text = f"{program} -version printed no version: {' '.join(output.split())[:200]}"
        return failure("java", text, fix)
    if int(match[1]) < VERSION_MIN:
        text = f"{program} is version {match[1]}; Spark needs {VERSION_MIN} or newer"
        return failure("java", text, fix)
    return ok("java", f"{program}, {match[0]}")


def _unset_or_install(environment: Mapping[str, str]) -> Fix:
    """Return the fix: unset JAVA_HOME if the Java of PATH is good, else install one."""
    rest = {name: value for name, value in environment.items() if name != "JAVA_HOME"}
    program = find_program("java", rest)
    if program is not None and _check_version(program, rest, None).level == "ok":
        return run("unset JAVA_HOME")
    return install()


def install(release: Path = Path("/etc/os-release")) -> Fix:
    """Return the install command of this distribution."""
    try:
        text = release.read_text()
    except OSError:
        text = ""
    fields = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', text, re.MULTILINE))
    names = [fields.get("ID", ""), *fields.get("ID_LIKE", "").split()]
    for name in names:
        if name not in INSTALL:
            continue
        command = INSTALL[name]
        number = fields.get("VERSION_ID", "").partition(".")[0]
        if name == fields.get("ID") == "debian" and int(number or 99) >= DEBIAN_WITHOUT_17:
            command = INSTALL["ubuntu"]
        return run_as_root(command)
    return do(f"install Java {VERSION_MIN} or newer, with `java` on the PATH")
