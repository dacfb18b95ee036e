"""ACLs decide as Kafka's rules say, whatever the index does to be fast."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.kafka.access.acl_administration import AclFilter
from frazil.kafka.access.acls import (
    IMPLIED_BY,
    AclBinding,
    AclIndex,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)

NAMES = ["a", "ab", "abc", "b", "*"]
PRINCIPALS = ["User:x", "User:y", "User:*"]
HOSTS = ["1.1.1.1", "*"]
OPERATIONS = [
    *(AclOperation.ALL, AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE),
    *(AclOperation.ALTER_CONFIGS, AclOperation.DESCRIBE_CONFIGS),
]
BINDINGS = st.builds(
    AclBinding,
    st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP]),
    st.sampled_from(NAMES),
    st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    st.sampled_from(PRINCIPALS),
    st.sampled_from(HOSTS),
    st.sampled_from(OPERATIONS),
    st.sampled_from([AclPermission.ALLOW, AclPermission.DENY]),
)


def decided(
    bindings: set[AclBinding], principal: str, host: str, operation: AclOperation, name: str
) -> bool:
    """Kafka's rules for a topic, one after the other."""
    about = [
        each
        for each in bindings
        if each.resource_type == ResourceType.TOPIC
        if each.principal in ("User:*", principal)
        if each.host in ("*", host)
        if (each.pattern == PatternType.LITERAL and each.name in (name, "*"))
        or (each.pattern == PatternType.PREFIXED and name.startswith(each.name))
    ]
    denied = {each.operation for each in about if each.permission == AclPermission.DENY}
    allowed = {each.operation for each in about if each.permission == AclPermission.ALLOW}
    if denied & {operation, AclOperation.ALL}:
        return False
    return bool(allowed & {operation, AclOperation.ALL, *IMPLIED_BY.get(operation, ())})


@given(st.sets(BINDINGS, max_size=8))
def test_decisions(bindings: set[AclBinding]) -> None:
    index = AclIndex(bindings)
    for principal, host, operation, name in itertools.product(
        PRINCIPALS[:2], ["1.1.1.1", "2.2.2.2"], OPERATIONS[1:], ["a", "ab", "abcd", "c"]
    ):
        expected = decided(bindings, principal, host, operation, name)
        found = index.allows(principal, host, operation, ResourceType.TOPIC, name)
        assert found == expected, (principal, host, operation, name)


@given(st.sets(BINDINGS, max_size=8))
def test_whether_any_topic_can_be_written(bindings: set[AclBinding]) -> None:
    """If one of these can be, the answer is yes."""
    index = AclIndex(bindings)
    write, host = AclOperation.WRITE, "1.1.1.1"
    can = [
        n
        for n in ["a", "ab", "abc", "abcd", "b", "c"]
        if decided(bindings, "User:x", host, write, n)
    ]
    if can:
        assert index.allows_any("User:x", host, write, ResourceType.TOPIC), can


def acl(
    name: str,
    pattern: PatternType = PatternType.LITERAL,
    permission: AclPermission = AclPermission.ALLOW,
) -> AclBinding:
    operation = AclOperation.WRITE
    return AclBinding(ResourceType.TOPIC, name, pattern, "User:x", "*", operation, permission)


@pytest.mark.parametrize(
    ("bindings", "expected"),
    [
        ([], False),
        ([acl("a")], True),
        ([acl("a"), acl("*", permission=AclPermission.DENY)], False),
        ([acl("a"), acl("a", permission=AclPermission.DENY)], False),
        ([acl("abc"), acl("a", PatternType.PREFIXED, AclPermission.DENY)], False),
        ([acl("*"), acl("a", PatternType.PREFIXED, AclPermission.DENY)], True),
        ([acl("a", PatternType.PREFIXED), acl("a", permission=AclPermission.DENY)], True),
    ],
)
def test_denials_that_leave_nothing_to_write(bindings: list[AclBinding], expected: bool) -> None:
    found = AclIndex(bindings).allows_any(
        "User:x", "1.1.1.1", AclOperation.WRITE, ResourceType.TOPIC
    )
    assert found == expected


@pytest.mark.parametrize(
    ("name", "pattern", "expected"),
    [
        (None, PatternType.ANY, {"ab", "a+", "*"}),
        ("ab", PatternType.ANY, {"ab"}),
        ("ab", PatternType.MATCH, {"ab", "a+", "*"}),
        ("x", PatternType.MATCH, {"*"}),
        ("a", PatternType.PREFIXED, {"a+"}),
        ("a", PatternType.LITERAL, set()),
    ],
)
def test_filters(name: str | None, pattern: PatternType, expected: set[str]) -> None:
    bindings = {"ab": acl("ab"), "a+": acl("a", PatternType.PREFIXED), "*": acl("*")}
    wanted = AclFilter(
        *(ResourceType.ANY, name, pattern, None, None, AclOperation.ANY, AclPermission.ANY)
    )
    assert {key for key, binding in bindings.items() if wanted.matches(binding)} == expected
