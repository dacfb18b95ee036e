"""python -m frazil.kafka.wire decode FetchRequest 12: show the code that is compiled for it."""

from __future__ import annotations

import sys

from frazil.kafka.wire.apis import APIS
from frazil.kafka.wire.decoder import write_decoder
from frazil.kafka.wire.encoder import write_encoder
from frazil.kafka.wire.layout import Layout

WRITERS = {"decode": write_decoder, "encode": write_encoder}


def main() -> int:
    kinds = [kind for api in APIS.values() for kind in (api.request, api.response)]
    names = {kind.VERSIONS.name: kind for kind in kinds}
    match sys.argv[1:]:
        case [("decode" | "encode") as direction, name, version] if name in names:
            if version.isdigit() and int(version) in names[name].VERSIONS.valid:
                sys.stdout.write(WRITERS[direction](Layout(names[name], int(version))).text)
                return 0
    sys.stderr.write("usage: python -m frazil.kafka.wire decode|encode MESSAGE VERSION\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
