"""Build the web page into the package: `python ui/build.py`.

Does nothing if the build is up to date. With --if-possible, a missing Node.js is not an error:
Frazil works without its page and says so.
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
NODE_MIN = (20, 19)


def main(arguments: list[str]) -> int:
    """Build the page unless it is up to date. Returns the exit code."""
    digest = _digest(_sources())
    if BUILD_DIGEST.is_file() and BUILD_DIGEST.read_text() == digest:
        return 0
    problem = _node_problem()
    if problem is not None:
        print(f"the web page is not built: {problem}; everything else works", file=sys.stderr)
        return 0 if "--if-possible" in arguments else 1
    print("building the web page", file=sys.stderr)
    lock = _digest([LOCK])
    if not INSTALL_DIGEST.is_file() or INSTALL_DIGEST.read_text() != lock:
        _npm("ci", "--no-audit", "--no-fund", "--loglevel=error")
        INSTALL_DIGEST.write_text(lock)
    _npm("run", "--silent", "build", "--", "--logLevel", "warn")
    BUILD_DIGEST.write_text(digest)
    return 0


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


def _sources() -> list[Path]:
    own = [HERE / name for name in ("index.html", "package.json", "svelte.config.js")]
    return [*own, LOCK, HERE / "vite.config.ts", *sorted((HERE / "src").rglob("*.*"))]


def _digest(paths: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        if path.name.endswith(".test.ts"):
            continue
        digest.update(f"{path.relative_to(HERE).as_posix()}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except subprocess.CalledProcessError as error:
        print(f"the web page is not built: {error}", file=sys.stderr)
        sys.exit(1)
