"""Ask a node of ours with promtool.

python -m tests.live.prometheus.use_promtool
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.demo.records import NS_PER_S, START_NS
from tests.live.prometheus.server import program
from tests.serve.served import served
from tests.serve.shop import send_shop

START = START_NS // NS_PER_S
RANGE = (f"--start={START}", f"--end={START + 20}")
ASKED = (
    ("instant", f"--time={START + 20}", "URL", "sum by (job) (process_cpu_utilization_ratio)"),
    ("range", *RANGE, "--step=5s", "URL", "rate(http_server_request_duration_seconds_count[20s])"),
    ("instant", f"--time={START + 20}", "URL", "db_client_operation_duration_seconds"),
    ("series", *RANGE, "--match=shop_orders_total", "URL"),
    ("labels", *RANGE, "URL", "job"),
)


def main() -> int:
    failed = 0
    with tempfile.TemporaryDirectory() as folder, served(Path(folder) / "data") as node:
        send_shop(node.rooms.otlp.http_port, lambda text: node.embedded.sql(text).fetchall())
        for what, *arguments in ASKED:
            command = [str(program("promtool")), "query", what, *arguments]
            url = f"{node.url}/prometheus"
            said = subprocess.run(
                [url if each == "URL" else each for each in command],
                capture_output=True,
                text=True,
                check=False,
            )
            is_answered = said.returncode == 0 and bool(said.stdout.strip())
            failed += not is_answered
            shown = said.stdout or said.stderr
            sys.stdout.write(f"{what}: {'ok' if is_answered else 'FAILED'}\n{shown[:400]}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
