"""ApiVersions, API 18, versions 0-4. Generated from the definitions of Apache Kafka 4.2.1 by
`python -m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the Apache
License 2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import Field, KafkaMessage, Struct, Versions


class ApiVersionsRequest(KafkaMessage):
    """Request in versions 0-4, flexible in 3+.

    Versions 0 through 2 of ApiVersionsRequest are the same.

    Version 3 is the first flexible version and adds ClientSoftwareName and
    ClientSoftwareVersion.

    Version 4 fixes KAFKA-17011, which blocked SupportedFeatures.MinVersion in the response from
    being 0.
    """

    VERSIONS = Versions("ApiVersionsRequest", "0-4", flexible="3+", api_key=18)

    client_software_name: Annotated[str, Field("string", "3+", ignorable=True)] = ""
    """The name of the client."""
    client_software_version: Annotated[str, Field("string", "3+", ignorable=True)] = ""
    """The version of the client."""


class ApiVersionsResponse(KafkaMessage):
    """Response in versions 0-4, flexible in 3+.

    Version 1 adds throttle time to the response.

    Starting in version 2, on quota violation, brokers send out responses before throttling.

    Version 3 is the first flexible version. Tagged fields are only supported in the body but not
    in the header. The length of the header must not change in order to guarantee the backward
    compatibility.

    Starting from Apache Kafka 2.4 (KIP-511), ApiKeys field is populated with the supported
    versions of the ApiVersionsRequest when an UNSUPPORTED_VERSION error is returned.

    Version 4 fixes KAFKA-17011, which blocked SupportedFeatures.MinVersion from being 0.
    """

    VERSIONS = Versions("ApiVersionsResponse", "0-4", flexible="3+", api_key=18)

    class ApiVersion(Struct):
        """The APIs supported by the broker."""

        api_key: Annotated[int, Field("int16", "0+")] = 0
        """The API index."""
        min_version: Annotated[int, Field("int16", "0+")] = 0
        """The minimum supported version, inclusive."""
        max_version: Annotated[int, Field("int16", "0+")] = 0
        """The maximum supported version, inclusive."""

    class SupportedFeatureKey(Struct):
        """Features supported by the broker. Note: in v0-v3, features with MinSupportedVersion =
        0 are omitted."""

        name: Annotated[str, Field("string", "3+")] = ""
        """The name of the feature."""
        min_version: Annotated[int, Field("int16", "3+")] = 0
        """The minimum supported version for the feature."""
        max_version: Annotated[int, Field("int16", "3+")] = 0
        """The maximum supported version for the feature."""

    class FinalizedFeatureKey(Struct):
        """List of cluster-wide finalized features. The information is valid only if
        FinalizedFeaturesEpoch >= 0."""

        name: Annotated[str, Field("string", "3+")] = ""
        """The name of the feature."""
        max_version_level: Annotated[int, Field("int16", "3+")] = 0
        """The cluster-wide finalized max version level for the feature."""
        min_version_level: Annotated[int, Field("int16", "3+")] = 0
        """The cluster-wide finalized min version level for the feature."""

    error_code: Annotated[int, Field("int16", "0+")] = 0
    """The top-level error code."""
    api_keys: Annotated[list[ApiVersionsResponse.ApiVersion], Field("[]ApiVersion", "0+")] = []
    """The APIs supported by the broker."""
    throttle_time_ms: Annotated[int, Field("int32", "1+", ignorable=True)] = 0
    """The duration in milliseconds for which the request was throttled due to a quota violation,
    or zero if the request did not violate any quota."""
    supported_features: Annotated[
        list[ApiVersionsResponse.SupportedFeatureKey],
        Field("[]SupportedFeatureKey", "3+", tagged="3+", tag=0, ignorable=True),
    ] = []
    """Features supported by the broker. Note: in v0-v3, features with MinSupportedVersion = 0
    are omitted."""
    finalized_features_epoch: Annotated[
        int, Field("int64", "3+", tagged="3+", tag=1, ignorable=True)
    ] = -1
    """The monotonically increasing epoch for the finalized features information. Valid values
    are >= 0. A value of -1 is special and represents unknown epoch."""
    finalized_features: Annotated[
        list[ApiVersionsResponse.FinalizedFeatureKey],
        Field("[]FinalizedFeatureKey", "3+", tagged="3+", tag=2, ignorable=True),
    ] = []
    """List of cluster-wide finalized features. The information is valid only if
    FinalizedFeaturesEpoch >= 0."""
    zk_migration_ready: Annotated[bool, Field("bool", "3+", tagged="3+", tag=3, ignorable=True)] = (
        False
    )
    """Set by a KRaft controller if the required configurations for ZK migration are present."""
