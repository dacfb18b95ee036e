"""Certificates, keys and tokens: each that is of no use, before a node refuses it."""

from __future__ import annotations

import datetime
import os
from pathlib import Path

import pytest

from frazil.doctor.checks.credentials import check_access
from tests.doctor.patient import Patient, as_nobody, is_well, public_folder, trouble
from tests.ingest.certificates import make_certificates

NOW = datetime.datetime.now(datetime.UTC)
DAY = datetime.timedelta(days=1)
TOKEN = "0123456789abcdef0123"


def with_certificates(folder: Path, certificate: str, key: str) -> Patient:
    Path(key).chmod(0o600)
    return Patient(
        folder,
        f"ingest.tls_certificate_file = '{certificate}'",
        f"ingest.tls_key_file = '{key}'",
    )


def test_nothing_is_asked_for(tmp_path: Path) -> None:
    """The default lets this machine in, and nobody else."""
    assert is_well(Patient(tmp_path).look(check_access))


def test_a_certificate_that_is_valid(tmp_path: Path) -> None:
    made = make_certificates(tmp_path)
    patient = with_certificates(tmp_path, made.server_certificate, made.server_key)
    (found,) = patient.look(check_access)
    assert found.level == "ok" and "valid until 2035-12-30" in found.found


@pytest.mark.parametrize(
    ("begin", "length", "level", "words"),
    [
        (NOW - 20 * DAY, 10 * DAY, "failure", "has expired"),
        (NOW + 10 * DAY, 20 * DAY, "failure", "is not valid yet"),
        (NOW - 10 * DAY, 15 * DAY, "note", "which is in 5 days"),
    ],
)
def test_a_certificate_of_another_time(
    tmp_path: Path, begin: datetime.datetime, length: datetime.timedelta, level: str, words: str
) -> None:
    """A new one, put where the line says, is fine."""
    made = make_certificates(tmp_path, begin, length)
    patient = with_certificates(tmp_path, made.server_certificate, made.server_key)
    found = trouble(patient.look(check_access))
    assert found.level == level and words in found.found
    assert found.fix and "new certificate" in found.fix.text
    assert made.server_certificate in found.fix.text
    make_certificates(tmp_path)
    assert is_well(patient.look(check_access))


@pytest.mark.parametrize("wrong", ["client_key", "locked_key", "authority"])
def test_a_key_of_another_certificate(tmp_path: Path, wrong: str) -> None:
    """Not its key, a key with a password, or no key at all: the right one is."""
    made = make_certificates(tmp_path)
    patient = with_certificates(tmp_path, made.server_certificate, getattr(made, wrong))
    found = trouble(patient.look(check_access))
    assert found.level == "failure" and "ingest.tls_key_file" in found.found
    assert found.fix and "name another" in found.fix.text
    Path(made.server_key).chmod(0o600)
    patient.set(f"ingest.tls_key_file = '{made.server_key}'")
    assert is_well(patient.look(check_access))


def test_a_certificate_that_is_not_there(tmp_path: Path) -> None:
    made = make_certificates(tmp_path)
    patient = with_certificates(tmp_path, str(tmp_path / "absent.pem"), made.server_key)
    found = trouble(patient.look(check_access))
    assert found.level == "failure" and "which is not there" in found.found
    assert found.fix and found.fix.text.startswith("put the file there")
    os.link(made.server_certificate, tmp_path / "absent.pem")
    assert is_well(patient.look(check_access))


@pytest.mark.parametrize("room", ["ingest", "serve"])
def test_a_token_that_is_not_there(tmp_path: Path, room: str) -> None:
    """The line makes one by chance, long enough, and for this user alone."""
    patient = Patient(tmp_path, f"{room}.token_file = '{tmp_path / 'a b' / 'tokens'}'")
    found = trouble(patient.look(check_access))
    assert found.level == "failure"
    patient.mend(found)
    assert all(each.level == "ok" for each in patient.look(check_access))
    assert len((tmp_path / "a b" / "tokens").read_text().strip()) == 32


def test_a_token_that_can_be_guessed(tmp_path: Path) -> None:
    patient = Patient(tmp_path, f"ingest.token_file = '{tmp_path / 'tokens'}'")
    (tmp_path / "tokens").write_text("short")
    (tmp_path / "tokens").chmod(0o600)
    found = trouble(patient.look(check_access))
    assert found.level == "failure" and "holds a token of 5 characters" in found.found
    (tmp_path / "tokens").write_text(TOKEN)
    assert is_well(patient.look(check_access))


def test_a_token_that_others_can_read(tmp_path: Path) -> None:
    patient = Patient(tmp_path, f"ingest.token_file = '{tmp_path / 'tokens'}'")
    (tmp_path / "tokens").write_text(TOKEN)
    (tmp_path / "tokens").chmod(0o644)
    found = trouble(patient.look(check_access))
    assert found.level == "warning" and "open to every user" in found.found
    patient.mend(found)
    assert is_well(patient.look(check_access))


def test_a_token_of_another_user() -> None:
    with public_folder() as folder:
        patient = Patient(folder, f"ingest.token_file = '{folder / 'tokens'}'")
        (folder / "tokens").write_text(TOKEN)
        (folder / "tokens").chmod(0o600)
        with as_nobody():
            found = trouble(patient.look(check_access))
        assert found.level == "failure" and "this user cannot read" in found.found
        patient.mend(found)
        with as_nobody():
            assert is_well(patient.look(check_access))


def test_a_door_that_is_open(tmp_path: Path) -> None:
    """Whoever says `insecure` is asked whether he means it."""
    patient = Patient(tmp_path, "ingest.host = '0.0.0.0'", "ingest.insecure = true")
    found = trouble(patient.look(check_access))
    assert found.level == "warning" and "anybody may send" in found.found
    patient.mend(found)
    assert is_well(patient.look(check_access))
