"""Principals: who a client is by its certificate."""

from __future__ import annotations

USER = "User"
ANONYMOUS = f"{USER}:ANONYMOUS"
KEYWORDS = {
    "commonName": "CN",
    "countryName": "C",
    "domainComponent": "DC",
    "localityName": "L",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "userId": "UID",
}
"""Names of RFC 2253. Other parts of a name have the one that OpenSSL gives them."""
ESCAPED = ',+"\\<>;'


def certificate_principal(certificate: object) -> str:
    """Return the principal of a client: the name in its certificate, as Kafka writes it, with the
    most specific part first; ANONYMOUS if it has shown none."""
    subject = certificate.get("subject", ()) if isinstance(certificate, dict) else ()
    parts = [
        "+".join(f"{KEYWORDS.get(name, name)}={_escaped(value)}" for name, value in part)
        for part in subject
    ]
    return f"{USER}:{','.join(reversed(parts))}" if parts else ANONYMOUS


def user_of(principal: str) -> str:
    """Return the name of a principal, which quotas are for."""
    return principal.partition(":")[2]


def _escaped(value: str) -> str:
    escaped = "".join(f"\\{c}" if c in ESCAPED else c for c in value)
    if escaped.startswith(("#", " ")):
        escaped = f"\\{escaped}"
    return f"{escaped[:-1]}\\ " if len(value) > 1 and value.endswith(" ") else escaped
