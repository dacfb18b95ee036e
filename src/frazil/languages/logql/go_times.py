"""Times in templates, written and read by Go's layouts: `2006-01-02T15:04:05.000Z07:00`."""

from __future__ import annotations

import calendar
import datetime
import re
from dataclasses import dataclass

from frazil.languages.logql.units import NS_PER_S

_DAYS = list(calendar.day_name)
_MONTHS = list(calendar.month_name)[1:]
_LAYOUT = re.compile(
    r"2006|January|Jan|Monday|Mon|MST|Z07:00|Z0700|-07:00|-0700|-07|[.,]0+|[.,]9+"
    r"|01|02|03|04|05|06|15|PM|pm|_2|1|2|3|4|5"
)
_EPOCH = datetime.datetime(1970, 1, 1)  # noqa: DTZ001 # of a zone that follows


@dataclass(frozen=True, slots=True)
class TemplateTime:
    """A moment, in UTC."""

    ns: int

    def parts(self) -> tuple[datetime.datetime, int]:
        """The moment in whole seconds, and nanoseconds."""
        seconds, rest = divmod(self.ns, NS_PER_S)
        return _EPOCH + datetime.timedelta(seconds=seconds), rest

    def shown(self) -> str:
        moment, rest = self.parts()
        fraction = f".{rest:09}".rstrip("0") if rest else ""
        return f"{moment:%Y-%m-%d %H:%M:%S}{fraction} +0000 UTC"


def format_go_time(layout: str, time: TemplateTime) -> str:
    moment, rest = time.parts()

    def written(found: re.Match[str]) -> str:
        token = found[0]
        if token[0] in ".,":
            digits = f"{rest:09}"[: len(token) - 1]
            if token[1] == "0":
                return token[0] + digits
            return f"{token[0]}{digits}".rstrip("0").rstrip(token[0])
        return _written(token, moment)

    return _LAYOUT.sub(written, layout)


def _written(token: str, moment: datetime.datetime) -> str:
    hour = moment.hour % 12 or 12
    values = {
        "2006": f"{moment.year:04}", "06": f"{moment.year % 100:02}",
        "January": _MONTHS[moment.month - 1], "Jan": _MONTHS[moment.month - 1][:3],
        "01": f"{moment.month:02}", "1": f"{moment.month}",
        "Monday": _DAYS[moment.weekday()], "Mon": _DAYS[moment.weekday()][:3],
        "02": f"{moment.day:02}", "_2": f"{moment.day:2}", "2": f"{moment.day}",
        "15": f"{moment.hour:02}", "03": f"{hour:02}", "3": f"{hour}",
        "04": f"{moment.minute:02}", "4": f"{moment.minute}",
        "05": f"{moment.second:02}", "5": f"{moment.second}",
        "PM": "PM" if moment.hour >= 12 else "AM", "pm": "pm" if moment.hour >= 12 else "am",
        "MST": "UTC", "Z07:00": "Z", "Z0700": "Z", "-07:00": "+00:00", "-0700": "+0000",
        "-07": "+00",
    }  # fmt: skip
    return values[token]


_READ = {
    "2006": r"(?P<year>\d{4})",
    "06": r"(?P<short>\d{2})",
    "January": f"(?P<month_name>{'|'.join(_MONTHS)})",
    "Jan": f"(?P<month_name>{'|'.join(name[:3] for name in _MONTHS)})",
    "01": r"(?P<month>\d{2})",
    "1": r"(?P<month>\d{1,2})",
    "Monday": f"(?:{'|'.join(_DAYS)})",
    "Mon": f"(?:{'|'.join(name[:3] for name in _DAYS)})",
    "02": r"(?P<day>\d{2})",
    "_2": r" ?(?P<day>\d{1,2})",
    "2": r"(?P<day>\d{1,2})",
    "15": r"(?P<hour>\d{2})",
    "03": r"(?P<hour>\d{2})",
    "3": r"(?P<hour>\d{1,2})",
    "04": r"(?P<minute>\d{2})",
    "4": r"(?P<minute>\d{1,2})",
    "05": r"(?P<second>\d{2})(?P<fraction>[.,]\d+)?",
    "5": r"(?P<second>\d{1,2})(?P<fraction>[.,]\d+)?",
    "PM": "(?P<half>AM|PM)",
    "pm": "(?P<half>am|pm)",
    "MST": "(?:UTC|GMT)",
}
_ZONE = r"(?P<zone>Z|[-+]\d{2}(?::?\d{2})?)"


def parse_go_time(layout: str, text: str) -> TemplateTime | None:
    """Read a time by its layout; None if it has another."""
    pattern, at = "", 0
    for token in _LAYOUT.finditer(layout):
        pattern += re.escape(layout[at : token.start()])
        if token[0][0] not in ".,":
            pattern += _READ.get(token[0], _ZONE)
        at = token.end()
    pattern += re.escape(layout[at:])
    try:
        match = re.fullmatch(pattern, text)
    except re.error:  # a part is in the layout twice
        return None
    return None if match is None else _moment(match.groupdict())


def _moment(parts: dict[str, str | None]) -> TemplateTime | None:
    year = int(parts.get("year") or 0)
    if parts.get("short"):
        short = int(parts["short"] or 0)
        year = short + (1900 if short >= 69 else 2000)
    month = int(parts.get("month") or 1)
    if name := parts.get("month_name"):
        month = next(i for i, known in enumerate(_MONTHS, start=1) if known.startswith(name))
    hour = int(parts.get("hour") or 0)
    if half := parts.get("half"):
        hour = hour % 12 + (12 if half.lower() == "pm" else 0)
    try:
        moment = datetime.datetime(  # noqa: DTZ001 # the zone is subtracted below
            max(1, year),
            month,
            int(parts.get("day") or 1),
            hour,
            int(parts.get("minute") or 0),
            int(parts.get("second") or 0),
        )
    except ValueError:
        return None
    since = moment - _EPOCH
    fraction = int(((parts.get("fraction") or ".")[1:] + "0" * 9)[:9])
    seconds = since.days * 86_400 + since.seconds - _zone_s(parts.get("zone") or "Z")
    return TemplateTime(seconds * NS_PER_S + fraction)


def _zone_s(zone: str) -> int:
    if zone == "Z":
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    seconds = int(digits[:2]) * 3600 + int(digits[2:]) * 60
    return -seconds if zone[0] == "-" else seconds
