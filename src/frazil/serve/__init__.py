"""serve: what a node shows over HTTP: SQL, questions, how it does.

    api.py         Api: the port, open
    app.py         App: what becomes of a request
    page.py        Page: the web page, as it was built
    config.py      ServeConfig
    rooms.py       Rooms: what there is to show
    desk.py        Desk: what an endpoint works with; Asking: queries that end when nobody waits
    endpoints.py   Endpoint, Routes: one thing that can be asked for, and how it is found
    listing.py     all of them
    openapi.py     all of them, described for programs
    request.py     Request: what somebody asks, and the values in it
    values.py      types of those values
    comments.py    what is said of them, for the description
    answers.py     answers, and errors by number
    streams.py     rows on their way: Arrow and CSV
    sql.py         SQL
    logs.py        questions about logs
    one_trace.py   one trace: its outline, a span of it, and where something is
    traces.py      questions about traces
    services.py    questions about services
    metric_questions.py  questions about metrics
    dashboards.py  dashboards of the web page
    dashboard_model.py   Dashboard: panels on a grid, as a file has them
    dashboard_files.py   DashboardFiles: the files
    tail.py        rows as they come
    box.py         the search box: its names, and what it says as SQL
    operating.py   status, health and probes
    lake_work.py   flush, maintenance, snapshots
    lake_tables.py the tables of the lake, and one of them in every detail
    demo.py        demo data
    demo_shop.py   DemoShop: the process that sends it
    life.py        Life: since when a node runs, and how fast data comes
    status.py      Status: how it does, as one answer
    looking.py     that, looked up
    health.py      is each room well, why not, and what next
    prometheus.py  all metrics as text
    families.py    every metric under the name that Prometheus knows it by
    measured.py    what is measured when somebody looks
    aliases.py     our numbers under names that others know
    process.py     what the system says of this process

Everything here belongs to the event loop; whatever takes long runs in threads of its own.
"""

from frazil.serve.api import Api
from frazil.serve.comments import comments_of
from frazil.serve.config import ServeConfig
from frazil.serve.health import Check, checks_of, is_ready, readiness_text
from frazil.serve.life import Life
from frazil.serve.listing import description
from frazil.serve.looking import status_of
from frazil.serve.rooms import Rooms
from frazil.serve.status import Status

__all__ = [
    "Api",
    "Check",
    "Life",
    "Rooms",
    "ServeConfig",
    "Status",
    "checks_of",
    "comments_of",
    "description",
    "is_ready",
    "readiness_text",
    "status_of",
]
