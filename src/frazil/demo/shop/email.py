"""The queue between checkout and mailer: an order is announced, and a mail is sent later."""

from __future__ import annotations

from frazil.demo.services import MAILER
from frazil.demo.telemetry.instruments import MAILS, QUEUE_LENGTH
from frazil.demo.telemetry.request_trace import (
    CLIENT,
    CONSUMER,
    INFO,
    NS_PER_S,
    PRODUCER,
    WARN,
    Facts,
    OpenSpan,
    RequestTrace,
)

TOPIC, BROKER, MAIL_SERVER = "orders", "kafka.shop", "smtp.shop"
POLL_MS = 120.0
"""How long a message usually waits."""
MESSAGING: Facts = {
    "messaging.system": "kafka",
    "messaging.destination.name": TOPIC,
    "server.address": BROKER,
    "server.port": 9092,
}


def announce(trip: RequestTrace, caller: OpenSpan, order: str, at_ns: int) -> int:
    """Put a message into the queue. Returns when it is there; the mail follows on its own."""
    span = trip.begin(caller.pod, f"send {TOPIC}", PRODUCER, at_ns, caller)
    partition = trip.rand.randrange(4)
    span.say(MESSAGING)
    span.say(
        {
            "messaging.operation.name": "send",
            "messaging.operation.type": "send",
            "messaging.destination.partition.id": str(partition),
        }
    )
    end_ns = trip.after(at_ns, caller.pod, 1.5)
    trip.end(span, end_ns)
    # The mailer has one pod, which alone tells how long its queue is.
    mailer = trip.fleet.of(MAILER)[0]
    trip.measure_in(mailer, QUEUE_LENGTH, span, end_ns, 1)
    trip.later.append(_mail(trip, span, order, end_ns))
    return end_ns


def _mail(trip: RequestTrace, message: OpenSpan, order: str, sent_ns: int) -> RequestTrace:
    """The mailer takes the message: a trace of its own, linked to the one that sent it."""
    mailer = trip.fleet.of(MAILER)[0]
    mailer.served_count += 1
    later = RequestTrace(trip.fleet, trip.scene, trip.rand, sent_ns, is_later=True)
    at_ns = later.after(sent_ns, mailer, POLL_MS) + int(trip.scene.mail_away_s * NS_PER_S)
    span = later.begin(mailer, f"process {TOPIC}", CONSUMER, at_ns)
    span.say(MESSAGING)
    span.say(
        {
            "messaging.operation.name": "process",
            "messaging.operation.type": "process",
            "messaging.consumer.group.name": "mailer",
        }
    )
    span.link(message, {"messaging.operation.type": "send"})
    if trip.scene.mail_away_s:
        waited_s = round((at_ns - sent_ns) / NS_PER_S, 1)
        later.log(span, at_ns, WARN, f"mail for {order} waited {waited_s} s in the queue")
    at_ns = later.after(at_ns, mailer, 1.0)
    smtp = later.begin(mailer, "SMTP send", CLIENT, at_ns, span)
    smtp.say({"server.address": MAIL_SERVER, "server.port": 25})
    at_ns = later.after(at_ns, mailer, 45.0)
    later.end(smtp, at_ns)
    later.log(span, at_ns, INFO, f"confirmation of {order} sent", {"shop.order.id": order})
    later.end(span, at_ns)
    later.measure(QUEUE_LENGTH, span, at_ns, -1)
    later.measure(MAILS, span, at_ns, 1, (("template", "confirmation"),))
    return later
