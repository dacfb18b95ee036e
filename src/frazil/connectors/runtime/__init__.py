"""How a node runs connectors.

connectors.py           Connectors: all of a node, and the statements about them
supervisor.py           ConnectorSupervisor: one connector, life after life
source_run.py           SourceRun: appends what a source sends, step by step
sink_run.py             SinkRun: delivers a topic, and keeps the progress
connector_process.py    ConnectorProcess: the process, as the node sees it
connector_state.py      ConnectorStates: paused, failed, epoch
connector_log.py        ConnectorLog: what connectors need of the log
"""

from frazil.connectors.runtime.connector_log import ConnectorLog
from frazil.connectors.runtime.connectors import Connectors, open_connectors
from frazil.connectors.runtime.supervisor import ConnectorSpec, ConnectorStatus

__all__ = [
    "ConnectorLog",
    "ConnectorSpec",
    "ConnectorStatus",
    "Connectors",
    "open_connectors",
]
