"""StageLocation: the URL of a stage, and whether it is below a root.

Everything that could lead elsewhere is refused: `..`, empty parts, control characters, a user or a
query in the URL, other schemes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from frazil.errors import Malformed, Unknown

LOCAL = "file"
HTTP = frozenset({"http", "https"})
BUCKETS = frozenset({"s3", "gs", "az"})
FORBIDDEN = frozenset("\\\x7f") | {chr(code) for code in range(32)}
PATH_CHARACTERS_MAX = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class StageLocation:
    """`s3://bucket/folder` in parts."""

    scheme: str
    host: str
    """Bucket, container, or host and port; empty for a local folder."""
    path: str
    """Without slashes at its ends."""

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.host}/{self.path}".rstrip("/")

    def is_below(self, root: StageLocation) -> bool:
        """Return whether this is the root or a folder inside it."""
        if (self.scheme, self.host) != (root.scheme, root.host):
            return False
        return not root.path or f"{self.path}/".startswith(f"{root.path}/")


def parse_location(url: str) -> StageLocation:
    """Parse a URL, or the path of a local folder. `Malformed` if it is not safe to use."""
    if url.startswith("/"):
        return StageLocation(scheme=LOCAL, host="", path=checked_path(url.strip("/")))
    if any(character in FORBIDDEN for character in url):
        raise Malformed(f"the URL {url!r} contains a control character or a backslash")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise Malformed(f"{url!r} is not a URL: {error}") from None
    if parts.scheme not in {LOCAL, *HTTP, *BUCKETS}:
        raise Malformed(f"{url!r} has no scheme that stages know: file, s3, gs, az, http or https")
    if parts.query or parts.fragment or "@" in parts.netloc:
        raise Malformed(
            "the URL of a stage has no query, fragment, user or password; put credentials into "
            "[connections]"
        )
    if parts.scheme == LOCAL and parts.netloc:
        raise Malformed(f"{url!r} names a host; a local folder is file:///folder")
    if parts.scheme != LOCAL and not parts.hostname:
        raise Malformed(f"{url!r} names no bucket or host")
    if parts.scheme in HTTP and "%" in parts.path:
        raise Malformed(f"{url!r} contains %; write the URL without escapes")
    host = parts.netloc if parts.scheme in BUCKETS else (parts.hostname or "")
    if parts.scheme in HTTP and port is not None:
        host = f"{host}:{port}"
    return StageLocation(scheme=parts.scheme, host=host, path=checked_path(parts.path.strip("/")))


def checked_path(path: str) -> str:
    """Return a path relative to a stage. `Malformed` if it could leave its folder."""
    if len(path) > PATH_CHARACTERS_MAX:
        raise Malformed(f"the path has more than {PATH_CHARACTERS_MAX} characters")
    if any(character in FORBIDDEN for character in path):
        raise Malformed(f"the path {path!r} contains a control character or a backslash")
    if path and any(part in ("", ".", "..") for part in path.split("/")):
        raise Malformed(f"the path {path!r} contains an empty part, . or ..")
    return path


def root_of(location: StageLocation, roots: Iterable[str]) -> StageLocation:
    """Return the root that a stage is below, the shortest. `Unknown` if there is none."""
    found = [root for root in map(parse_location, roots) if location.is_below(root)]
    if not found:
        raise Unknown(
            f"{location.url} is not below any of stages.roots in the configuration; add a root, or "
            "use a URL below one"
        )
    return min(found, key=lambda root: len(root.path))
