"""Build the web page into the package: `python ui/build.py`.

Nothing is done when it is there already, made from these very files. With --if-possible a machine
without Node.js is no failure: Frazil works without its page, and says so.
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
MARK = BUILT / ".made-from"
INSTALLED = HERE / "node_modules" / ".made-from"
LOCK = HERE / "package-lock.json"
NODE_MIN = (20, 19)


def main(arguments: list[str]) -> int:
    """Build it, unless it is there."""
    made_from = _digest(_sources())
    if MARK.is_file() and MARK.read_text() == made_from:
        return 0
    why_not = _why_not()
    if why_not is not None:
        print(f"the web page is not built: {why_not}; everything else works", file=sys.stderr)
        return 0 if "--if-possible" in arguments else 1
    print("building the web page", file=sys.stderr)
    lock = _digest([LOCK])
    if not INSTALLED.is_file() or INSTALLED.read_text() != lock:
        _npm("ci", "--no-audit", "--no-fund", "--loglevel=error")
        INSTALLED.write_text(lock)
    _npm("run", "--silent", "build", "--", "--logLevel", "warn")
    MARK.write_text(made_from)
    return 0


def _why_not() -> str | None:
    """Why it cannot be built here; None when it can."""
    node, npm = shutil.which("node"), shutil.which("npm")
    wanted = ".".join(map(str, NODE_MIN))
    if node is None or npm is None:
        return f"there is no Node.js here; install {wanted} or newer, and npm"
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.match(r"v(\d+)\.(\d+)", said)
    if found is None or (int(found[1]), int(found[2])) < NODE_MIN:
        return f"Node.js is {said.strip() or 'of no version'}; install {wanted} or newer"
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
