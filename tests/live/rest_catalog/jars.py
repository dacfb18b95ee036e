"""The jars of a real Iceberg REST catalog: fetched once at set-up, and checked. 20 MB.

Apache Iceberg publishes its reference server as a servlet among the tests of its core. Those have a
classifier, which Spark's `--packages` cannot name, so this asks the Ivy that Spark brings. They are
of the release before ours: the tests of that were not published.

`python -m tests.live.rest_catalog.jars` is what `make setup` runs. Users need none of them.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import pyspark

from frazil.lake.spark.jars import RESOLVE_TIMEOUT_S, default_folder, paths
from tests.live.locked_jars import LockedJars

WANTED = """\
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="frazil" module="rest-catalog"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    <dependency org="org.apache.iceberg" name="iceberg-core" rev="1.11.0"
                conf="default->master,runtime">
      <artifact name="iceberg-core" type="jar"/>
      <artifact name="iceberg-core" type="jar" m:classifier="tests"/>
    </dependency>
    <dependency org="org.eclipse.jetty.ee10" name="jetty-ee10-servlet" rev="12.1.12"
                conf="default->master,runtime"/>
  </dependencies>
</ivy-module>
"""
JARS = LockedJars(
    lock=Path(__file__).with_suffix(".lock"),
    folder=Path.home() / ".cache" / "frazil" / "rest-catalog",
)
"""The server, and all it needs."""
SPARK = Path(pyspark.__file__).parent / "jars"
FROM_SPARK = ("hadoop-client-api-", "hadoop-client-runtime-", "log4j-", "commons-logging-", "py4j-")
"""What the server reads settings with, says why it fails with, and is told with what to serve."""
SQLITE = "org.xerial_sqlite-jdbc-"
"""Where it keeps its tables. Users have that one."""
OUTPUT_LINES_SHOWN = 20


def class_path() -> str:
    """For Java. What is locked comes first."""
    found = [path for path in sorted(SPARK.glob("*.jar")) if path.name.startswith(FROM_SPARK)]
    sqlite = [path for path in paths(default_folder()) if path.name.startswith(SQLITE)]
    return ":".join(str(path) for path in [*JARS.paths(), *sqlite, *found])


def gateway_jar() -> str:
    """By which Python talks to the server's process."""
    (found,) = SPARK.glob("py4j-*.jar")
    return str(found)


def _fetch() -> None:
    (ivy,) = SPARK.glob("ivy-*.jar")
    pattern = f"{JARS.folder}/jars/[organisation]_[artifact]-[revision](-[classifier]).[ext]"
    with tempfile.NamedTemporaryFile("w", suffix=".xml") as wanted:
        wanted.write(WANTED)
        wanted.flush()
        command = ["java", "-jar", str(ivy), "-ivy", wanted.name, "-cache", f"{JARS.folder}/cache"]
        command += ["-types", "jar", "bundle", "-confs", "default", "-retrieve", pattern]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=RESOLVE_TIMEOUT_S, check=False
        )
    if done.returncode != 0:
        shown = "\n".join(done.stdout.splitlines()[-OUTPUT_LINES_SHOWN:])
        raise SystemExit(f"the jars of the REST catalog were not fetched:\n{shown}")


if __name__ == "__main__":
    JARS.resolve(_fetch)
