"""Certificates, keys and tokens: each that is of no use, before a node refuses it."""

from __future__ import annotations

import datetime
import os
from pathlib import Path

import pytest

from frazil.doctor.checks.credentials import check_access
from tests.doctor.patient import Patient, all_ok, as_nobody, problem, public_folder
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


def test_the_default_only_admits_this_machine(tmp_path: Path) -> None:
    assert all_ok(Patient(tmp_path).check(check_access))


def test_a_valid_certificate_is_ok(tmp_path: Path) -> None:
    made = make_certificates(tmp_path)
    patient = with_certificates(tmp_path, made.server_certificate, made.server_key)
    (found,) = patient.check(check_access)
    assert found.level == "ok" and "valid until 2035-12-30" in found.found


@pytest.mark.parametrize(
    ("begin", "length", "level", "words"),
    [
        (NOW - 20 * DAY, 10 * DAY, "failure", "has expired"),
        (NOW + 10 * DAY, 20 * DAY, "failure", "is not valid yet"),
        (NOW - 10 * DAY, 15 * DAY, "note", "in 5 days"),
    ],
)
def test_an_expired_or_future_certificate_is_a_failure(
    tmp_path: Path, begin: datetime.datetime, length: datetime.timedelta, level: str, words: str
) -> None:
    """A new one in its place is ok."""
    made = make_certificates(tmp_path, begin, length)
    patient = with_certificates(tmp_path, made.server_certificate, made.server_key)
    found = problem(patient.check(check_access))
    assert found.level == level and words in found.found
    assert found.fix and "new certificate" in found.fix.text
    assert made.server_certificate in found.fix.text
    make_certificates(tmp_path)
    assert all_ok(patient.check(check_access))


@pytest.mark.parametrize("wrong", ["client_key", "locked_key", "authority"])
def test_a_wrong_key_is_a_failure(tmp_path: Path, wrong: str) -> None:
    """Another key, one with a password, or no key."""
    made = make_certificates(tmp_path)
    patient = with_certificates(tmp_path, made.server_certificate, getattr(made, wrong))
    found = problem(patient.check(check_access))
    assert found.level == "failure" and "ingest.tls_key_file" in found.found
    assert found.fix and "name another" in found.fix.text
    Path(made.server_key).chmod(0o600)
    patient.set(f"ingest.tls_key_file = '{made.server_key}'")
    assert all_ok(patient.check(check_access))


def test_a_missing_certificate_is_a_failure(tmp_path: Path) -> None:
    made = make_certificates(tmp_path)
    patient = with_certificates(tmp_path, str(tmp_path / "absent.pem"), made.server_key)
    found = problem(patient.check(check_access))
    assert found.level == "failure" and "which does not exist" in found.found
    assert found.fix and found.fix.text.startswith("create the file")
    os.link(made.server_certificate, tmp_path / "absent.pem")
    assert all_ok(patient.check(check_access))


@pytest.mark.parametrize("room", ["ingest", "serve"])
def test_a_missing_token_file_is_created_by_the_fix(tmp_path: Path, room: str) -> None:
    """With a random token, long enough, readable by this user only."""
    patient = Patient(tmp_path, f"{room}.token_file = '{tmp_path / 'a b' / 'tokens'}'")
    found = problem(patient.check(check_access))
    assert found.level == "failure"
    patient.mend(found)
    assert all(each.level == "ok" for each in patient.check(check_access))
    assert len((tmp_path / "a b" / "tokens").read_text().strip()) == 32


def test_a_short_token_is_a_failure(tmp_path: Path) -> None:
    patient = Patient(tmp_path, f"ingest.token_file = '{tmp_path / 'tokens'}'")
    (tmp_path / "tokens").write_text("short")
    (tmp_path / "tokens").chmod(0o600)
    found = problem(patient.check(check_access))
    assert found.level == "failure" and "holds a token of 5 characters" in found.found
    (tmp_path / "tokens").write_text(TOKEN)
    assert all_ok(patient.check(check_access))


def test_a_token_file_that_others_can_read_is_a_warning(tmp_path: Path) -> None:
    patient = Patient(tmp_path, f"ingest.token_file = '{tmp_path / 'tokens'}'")
    (tmp_path / "tokens").write_text(TOKEN)
    (tmp_path / "tokens").chmod(0o644)
    found = problem(patient.check(check_access))
    assert found.level == "warning" and "readable by every user" in found.found
    patient.mend(found)
    assert all_ok(patient.check(check_access))


def test_a_token_file_of_another_user_is_a_failure() -> None:
    with public_folder() as folder:
        patient = Patient(folder, f"ingest.token_file = '{folder / 'tokens'}'")
        (folder / "tokens").write_text(TOKEN)
        (folder / "tokens").chmod(0o600)
        with as_nobody():
            found = problem(patient.check(check_access))
        assert found.level == "failure" and "this user cannot read" in found.found
        patient.mend(found)
        with as_nobody():
            assert all_ok(patient.check(check_access))


def test_insecure_on_a_public_address_is_a_warning(tmp_path: Path) -> None:
    patient = Patient(tmp_path, "ingest.host = '0.0.0.0'", "ingest.insecure = true")
    found = problem(patient.check(check_access))
    assert found.level == "warning" and "without TLS and authentication" in found.found
    patient.mend(found)
    assert all_ok(patient.check(check_access))
