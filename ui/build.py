"""Build the web page into the package: `python ui/build.py`.

The build is kept in git, so that only a change of the page's sources needs Node.js. Does nothing
if the build is up to date. With --if-possible, a missing Node.js is not an error: the page that
was built last is served. With --dependencies, only what a build needs is installed.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILT = HERE.parent / "src" / "frazil" / "serve" / "built"
BUILD_DIGEST = BUILT / ".made-from"
INSTALL_DIGEST = HERE / "node_modules" / ".made-from"
LOCK = HERE / "package-lock.json"
SETTINGS = ("index.html", "package.json", "svelte.config.js", "tsconfig.json", "vite.config.ts")
NODE_MIN = (20, 19)


def main(arguments: list[str]) -> int:
    """Build the page unless it is up to date. Returns the exit code."""
    is_install = "--dependencies" in arguments
    if not is_install and is_up_to_date():
        return 0
    problem = _node_problem()
    if problem is not None:
        is_error = "--if-possible" not in arguments
        if is_error or not is_install:
            print(f"the web page is older than its sources in ui/: {problem}", file=sys.stderr)
        return 1 if is_error else 0
    _install()
    if not is_install:
        print("building the web page", file=sys.stderr)
        build(BUILT)
        BUILD_DIGEST.write_text(f"{source_digest()}\n")
    return 0


def is_up_to_date() -> bool:
    """Return whether the page was built from the sources as they are."""
    return BUILD_DIGEST.is_file() and BUILD_DIGEST.read_text().strip() == source_digest()


def build(target: Path) -> None:
    """Build the page into a folder, which is emptied first. The same sources give the same
    bytes, in whatever folder they are."""
    _npm("run", "--silent", "build", "--", "--logLevel", "warn", "--outDir", str(target))


def source_digest() -> str:
    """Return a digest of everything that the page is built from."""
    own = [LOCK, *(HERE / name for name in SETTINGS)]
    sources = (path for path in (HERE / "src").rglob("*.*") if not path.match("*.test.ts"))
    return _digest([*own, *sorted(sources)])


def _install() -> None:
    lock = _digest([LOCK])
    if not INSTALL_DIGEST.is_file() or INSTALL_DIGEST.read_text() != lock:
        _npm("ci", "--no-audit", "--no-fund", "--loglevel=error")
        INSTALL_DIGEST.write_text(lock)


def _node_problem() -> str | None:
    """Return why the page cannot be built, or None."""
    node, npm = shutil.which("node"), shutil.which("npm")
    required = ".".join(map(str, NODE_MIN))
    if node is None or npm is None:
        return f"Node.js was not found; install {required} or newer, and npm"
    output = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.match(r"v(\d+)\.(\d+)", output)
    if version is None or (int(version[1]), int(version[2])) < NODE_MIN:
        return f"Node.js is {output.strip() or 'too old'}; install {required} or newer"
    return None


def _npm(*arguments: str) -> None:
    subprocess.run(["npm", *arguments], cwd=HERE, check=True)


def _digest(paths: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(f"{path.relative_to(HERE).as_posix()}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except subprocess.CalledProcessError as error:
        print(f"the web page is not built: {error}", file=sys.stderr)
        sys.exit(1)
