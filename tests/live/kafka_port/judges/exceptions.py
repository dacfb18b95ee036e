"""Tests that pass on Apache Kafka and may fail or be skipped here: by judge and name, with why."""

from __future__ import annotations

GROUP_SETTINGS = "groups have no settings of their own"
INTERNAL_TOPICS = "regular expressions that the server resolves match no internal topics"
SHARE_GROUPS = "share groups are not supported"
NODE_SETTINGS = "settings of the node are in frazil.toml, and no client can change them"

EXCEPTIONS: dict[str, dict[str, str]] = {
    "librdkafka": {
        "0081_admin/do_test_AlterConfigs": NODE_SETTINGS,
        "0081_admin/do_test_IncrementalAlterConfigs": NODE_SETTINGS,
        "0081_admin/do_test_DescribeConfigs_groups": GROUP_SETTINGS,
    },
    "franz-go": {
        "Test848RegexBrokerResolves": INTERNAL_TOPICS,
        "TestConsumeRegexShareSkipsInternal": SHARE_GROUPS,
        "TestShareGroup": SHARE_GROUPS,
        "TestShareGroupETL": SHARE_GROUPS,
        "TestShareGroupAckOnClose": SHARE_GROUPS,
        "TestShareGroupOffsetsAdmin": SHARE_GROUPS,
    },
    "kafka-tools": {},
}
