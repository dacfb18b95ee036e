"""processes: how the processes of a node talk to each other.

    channel.py   Channel: messages over a local socket
    messages.py  what writer and reader tell each other
    lifetime.py  a process that ends with its parent
    forks.py     forked processes, and their end

A node has one writer (log and OTLP ports) and one reader (hot tier, lake, API), which the writer
starts, watches and restarts. No record passes through a channel: the reader reads the log's files.
"""

from frazil.processes.channel import Channel
from frazil.processes.forks import fork_process, has_ended, kill_process
from frazil.processes.lifetime import end_with_parent
from frazil.processes.messages import (
    Beat,
    GroupsReply,
    GroupsRequest,
    Hello,
    ReaderReady,
    ReaderStopped,
    RoomReady,
    StartFailed,
    StatusReply,
    StatusRequest,
    Stop,
    ToReader,
    ToWriter,
)

__all__ = [
    "Beat",
    "Channel",
    "GroupsReply",
    "GroupsRequest",
    "Hello",
    "ReaderReady",
    "ReaderStopped",
    "RoomReady",
    "StartFailed",
    "StatusReply",
    "StatusRequest",
    "Stop",
    "ToReader",
    "ToWriter",
    "end_with_parent",
    "fork_process",
    "has_ended",
    "kill_process",
]
