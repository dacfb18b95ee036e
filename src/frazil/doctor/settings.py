"""What to do about settings that are refused."""

from __future__ import annotations

from frazil.doctor.finding import Fix, do


def mend_settings(config_file: str | None, reason: str) -> Fix:
    """The refusal says what is wrong; this says where to change it."""
    if config_file is not None and config_file in reason and "cannot be read" in reason:
        return do(f"make {config_file} readable, or name another file with --config")
    where = "the flags and the FRAZIL_ variables" if config_file is None else config_file
    return do(f"correct it in {where}")
