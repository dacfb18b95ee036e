"""reader: the reading process of a node: hot tier, lake, SQL, API and web page.

    __main__.py   the program, started by the writer
    run.py        opens and closes the components
    node_rules.py  the rules of a node
    node_link.py  NodeLink: messages to and from the writer

It follows the log's files without owning them. It may die at any time: the writer goes on
acknowledging, and starts another one, which rebuilds everything from the log.
"""

from frazil.reader.node_link import NodeLink
from frazil.reader.run import Sockets, run

__all__ = [
    "NodeLink",
    "Sockets",
    "run",
]
