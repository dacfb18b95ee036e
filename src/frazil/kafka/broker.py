"""Broker: what this node is in Kafka's terms: a cluster of one broker."""

from __future__ import annotations

import base64

from frazil.disk import Disk, make_directories, read_checkpoint, write_checkpoint
from frazil.kafka.context import ConnectionState, NetworkAddress
from frazil.model import Rand

NODE_ID = 1
"""The only broker, which is also the controller."""
FOLDER = "kafka"
CLUSTER_PATH = f"{FOLDER}/cluster.ckpt"
CLUSTER_KIND = b"KCLU"
CLUSTER_VERSION = 1
HINT = "Restore the file from a copy, or remove it: clients then see another cluster."
ID_BYTES = 16


class Broker:
    """The identity of the node. Unchanged while the port is open."""

    def __init__(self, identity: bytes, advertised: NetworkAddress | None) -> None:
        self._advertised = advertised
        self.cluster_id = base64.urlsafe_b64encode(identity).rstrip(b"=").decode()

    @classmethod
    def open(cls, disk: Disk, rand: Rand, advertised: NetworkAddress | None) -> Broker:
        """Read the identity of the cluster, or make one. Raises `Corrupt` if it is damaged."""
        make_directories(disk, FOLDER)
        identity = read_checkpoint(disk, CLUSTER_PATH, CLUSTER_KIND, CLUSTER_VERSION, HINT)
        if identity is None:
            identity = rand.randbytes(ID_BYTES)
            write_checkpoint(disk, CLUSTER_PATH, CLUSTER_KIND, CLUSTER_VERSION, identity)
        return cls(identity, advertised)

    def address(self, connection: ConnectionState) -> NetworkAddress:
        """Return where a client should connect to: where it did, unless the settings say."""
        return self._advertised or connection.local
