"""The jars of S3Proxy, an S3 server, and of Iceberg's S3 library, fetched and verified. 124 MB.

`make setup` runs `python -m tests.live.s3.jars`. Users need none of the server's.
"""

from __future__ import annotations

from pathlib import Path

from tests.live.locked_jars import LockedJars

IVY_MODULE = """\
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="frazil" module="s3"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    <dependency org="org.gaul" name="s3proxy" rev="4.1.0" conf="default->master" transitive="false">
      <artifact name="s3proxy" type="jar" m:classifier="jar-with-dependencies"/>
    </dependency>
    <dependency org="org.apache.iceberg" name="iceberg-aws-bundle" rev="1.12.0"
                conf="default->master" transitive="false"/>
  </dependencies>
</ivy-module>
"""
JARS = LockedJars(
    lock=Path(__file__).with_suffix(".lock"), folder=Path.home() / ".cache" / "frazil" / "s3"
)


def server_jar() -> Path:
    return _jar("org.gaul_s3proxy-")


def spark_jar() -> Path:
    """Return Iceberg's S3 library, which users of Spark SQL download."""
    return _jar("org.apache.iceberg_iceberg-aws-bundle-")


def _jar(prefix: str) -> Path:
    (found,) = (path for path in JARS.paths() if path.name.startswith(prefix))
    return found


if __name__ == "__main__":
    JARS.resolve(lambda: JARS.fetch_with_ivy(IVY_MODULE))
