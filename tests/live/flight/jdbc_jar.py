"""Arrow's JDBC driver of Flight SQL, fetched and verified. 45 MB.

`make setup` runs `python -m tests.live.flight.jdbc_jar`. Users bring their own.
"""

from __future__ import annotations

from pathlib import Path

from tests.live.locked_jars import LockedJars

IVY_MODULE = """\
<ivy-module version="2.0">
  <info organisation="frazil" module="flight"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    <dependency org="org.apache.arrow" name="flight-sql-jdbc-driver" rev="18.3.0"
                conf="default->master" transitive="false"/>
  </dependencies>
</ivy-module>
"""
JARS = LockedJars(
    lock=Path(__file__).with_suffix(".lock"),
    folder=Path.home() / ".cache" / "frazil" / "flight-sql-jdbc",
)


def missing() -> str | None:
    """Return what is not there, for tests to be skipped; None if all is."""
    try:
        JARS.paths()
    except AssertionError as error:
        return str(error)
    return None


def driver_jar() -> Path:
    (found,) = JARS.paths()
    return found


if __name__ == "__main__":
    JARS.resolve(lambda: JARS.fetch_with_ivy(IVY_MODULE))
