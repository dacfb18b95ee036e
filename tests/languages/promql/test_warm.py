"""After `frazil warm`, no PromQL query waits for a compiler."""

from __future__ import annotations

import importlib
import pkgutil

from frazil.languages.promql import kernels
from frazil.languages.promql.warm_promql import warm_promql


def test_every_kernel_is_warm() -> None:
    """Guarantees: warming up compiles each kernel that queries call, for one kind of arrays."""
    warm_promql()
    counts = {}
    for module in pkgutil.iter_modules(kernels.__path__):
        name = f"{kernels.__name__}.{module.name}"
        for function in vars(importlib.import_module(name)).values():
            # What is compiled into its callers has no cache of its own.
            if getattr(function, "__module__", "") == name and hasattr(function, "signatures"):
                is_cached = type(function._cache).__name__ != "NullCache"
                if is_cached:
                    counts[function.__name__] = len(function.signatures)
    assert len(counts) > 15
    assert set(counts.values()) == {1}, counts
