"""The queue between checkout and mailer: an order is announced, its mail sent later."""

from __future__ import annotations

from frazil.demo.services import MAILER
from frazil.demo.telemetry.instruments import MAILS, QUEUE_LENGTH
from frazil.demo.telemetry.request_trace import NS_PER_S, Attributes, OpenSpan, RequestTrace

TOPIC, BROKER, MAIL_SERVER = "orders", "kafka.shop", "smtp.shop"
POLL_MS = 120.0
"""Median wait of a message."""
MESSAGING: Attributes = {
    "messaging.system": "kafka",
    "messaging.destination.name": TOPIC,
    "server.address": BROKER,
    "server.port": 9092,
}


def announce(trace: RequestTrace, caller: OpenSpan, order: str, at_ns: int) -> int:
    """Send a message to the queue. Returns the end time; the mail is a trace of its own."""
    span = trace.begin(caller.pod, f"send {TOPIC}", "PRODUCER", at_ns, caller)
    partition = trace.rand.randrange(4)
    span.say(
        {
            **MESSAGING,
            "messaging.operation.name": "send",
            "messaging.operation.type": "send",
            "messaging.destination.partition.id": str(partition),
        }
    )
    end_ns = trace.after(at_ns, caller.pod, 1.5)
    trace.end(span, end_ns)
    # Only the mailer's single pod reports the length of its queue.
    mailer = trace.fleet.of(MAILER)[0]
    trace.measure(QUEUE_LENGTH, span, end_ns, 1, pod=mailer)
    trace.follow_ups.append(_mail(trace, span, order, end_ns))
    return end_ns


def _mail(trace: RequestTrace, message: OpenSpan, order: str, sent_ns: int) -> RequestTrace:
    """Return the trace of the mailer, linked to the one that sent the message."""
    mailer = trace.fleet.of(MAILER)[0]
    mailer.served_count += 1
    follow_up = RequestTrace(trace.fleet, trace.state, trace.rand, sent_ns, is_follow_up=True)
    at_ns = follow_up.after(sent_ns, mailer, POLL_MS) + int(trace.state.mail_away_s * NS_PER_S)
    span = follow_up.begin(mailer, f"process {TOPIC}", "CONSUMER", at_ns)
    span.say(
        {
            **MESSAGING,
            "messaging.operation.name": "process",
            "messaging.operation.type": "process",
            "messaging.consumer.group.name": "mailer",
        }
    )
    span.link(message, {"messaging.operation.type": "send"})
    if trace.state.mail_away_s:
        waited_s = round((at_ns - sent_ns) / NS_PER_S, 1)
        follow_up.log(span, at_ns, "WARN", f"mail for {order} waited {waited_s} s in the queue")
    at_ns = follow_up.after(at_ns, mailer, 1.0)
    smtp = follow_up.begin(mailer, "SMTP send", "CLIENT", at_ns, span)
    smtp.say({"server.address": MAIL_SERVER, "server.port": 25})
    at_ns = follow_up.after(at_ns, mailer, 45.0)
    follow_up.end(smtp, at_ns)
    follow_up.log(span, at_ns, "INFO", f"confirmation of {order} sent", {"shop.order.id": order})
    follow_up.end(span, at_ns)
    follow_up.measure(QUEUE_LENGTH, span, at_ns, -1)
    follow_up.measure(MAILS, span, at_ns, 1, (("template", "confirmation"),))
    return follow_up
