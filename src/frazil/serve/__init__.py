"""serve: what a node shows over HTTP: SQL, questions, how it does.

    config.py      ServeConfig
    rooms.py       Rooms: what there is to show

Everything here belongs to the event loop; whatever takes long runs in threads of its own.
"""

from frazil.serve.config import ServeConfig
from frazil.serve.rooms import Rooms

__all__ = ["Rooms", "ServeConfig"]
