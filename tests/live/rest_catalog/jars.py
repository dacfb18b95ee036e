"""The jars of a real Iceberg REST catalog, fetched once and verified. 20 MB.

Apache Iceberg publishes its reference server as a servlet in the tests jar of its core. That has a
classifier, which Spark's `--packages` cannot name, so Spark's own Ivy is run directly. It is from
the release before ours, whose tests jar was not published.

`make setup` runs `python -m tests.live.rest_catalog.jars`. Users need none of them.
"""

from __future__ import annotations

from pathlib import Path

from frazil.lake.spark.jars import default_folder, paths
from tests.live.locked_jars import SPARK, LockedJars

IVY_MODULE = """\
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
"""The server and its dependencies."""
FROM_SPARK = ("hadoop-client-api-", "hadoop-client-runtime-", "log4j-", "commons-logging-", "py4j-")
"""The server's configuration, logging, and Python gateway."""
SQLITE = "org.xerial_sqlite-jdbc-"
"""The database of its tables. Users have this jar."""


def class_path() -> str:
    """Return the class path, locked jars first."""
    found = [path for path in sorted(SPARK.glob("*.jar")) if path.name.startswith(FROM_SPARK)]
    sqlite = [path for path in paths(default_folder()) if path.name.startswith(SQLITE)]
    return ":".join(str(path) for path in [*JARS.paths(), *sqlite, *found])


def gateway_jar() -> str:
    """Return the py4j jar, which connects Python to the server's process."""
    (found,) = SPARK.glob("py4j-*.jar")
    return str(found)


if __name__ == "__main__":
    JARS.resolve(lambda: JARS.fetch_with_ivy(IVY_MODULE))
