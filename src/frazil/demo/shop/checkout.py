"""Buying: the longest way through the shop, and the one on which most can go wrong."""

from __future__ import annotations

from frazil.demo import protobuf
from frazil.demo.services import CHECKOUT, GATEWAY, PAYMENT, SHIPPING, STOREFRONT
from frazil.demo.shop.browsing import CREATED, FAILED, GET_CART
from frazil.demo.shop.calls import (
    DEADLINE_EXCEEDED,
    FAILED_PRECONDITION,
    OK,
    TIMED_OUT,
    Done,
    Method,
    Route,
    ask_database,
    call_http,
    call_outside,
    call_rpc,
    raise_in,
)
from frazil.demo.shop.catalogue import CHECK_STOCK, CONFLICT, FOUND, POSTGRES, PRODUCT_COUNT, query
from frazil.demo.shop.email import announce
from frazil.demo.shop.exceptions import ADDRESS_ERROR, PROVIDER_TIMEOUT, VOUCHER_ERROR
from frazil.demo.telemetry.instruments import ORDERS, PROVIDER_LATENCY, REVENUE
from frazil.demo.telemetry.request_trace import (
    ATTRIBUTES,
    ERROR,
    INFO,
    INTERNAL,
    NS_PER_S,
    WARN,
    Facts,
    OpenSpan,
    RequestTrace,
)

DECLINED = 402
DECLINED_SHARE = 0.04
SLOW_SHARE, USUALLY_SLOW_SHARE = 0.55, 0.003
"""Charges that the provider does not answer in time: while it is slow, and otherwise."""
PROVIDER_TIMEOUT_MS, CHARGE_TIMEOUT_MS, ORDER_TIMEOUT_MS = 1500, 2000, 4500
FAULT_SHARE, BAD_ADDRESS_SHARE = 0.15, 0.004
PROVIDER = "api.paywell.example"
CURRENCY = "EUR"
CARDS = ("visa", "mastercard", "paypal", "invoice")

SAVE_ORDER = query(
    POSTGRES, "INSERT", "orders", "INSERT INTO orders (id, customer_id, total) VALUES (?, ?, ?)"
)


# Payment.


def _charge(trip: RequestTrace, span: OpenSpan, at_ns: int) -> Done:
    card = trip.rand.choice(CARDS)
    span.say({"shop.payment.method": card})
    share = SLOW_SHARE if trip.scene.is_payment_slow else USUALLY_SLOW_SHARE
    median_ms = 9000.0 if trip.chance(share) else 90.0
    begun_ns = trip.after(at_ns, span.pod, 1.0)
    answer = trip.after(begun_ns, span.pod, median_ms), FOUND
    if trip.chance(DECLINED_SHARE):
        answer = answer[0], DECLINED
    url = f"https://{PROVIDER}/v2/charges"
    at_ns, status = call_outside(trip, span, url, PROVIDER, begun_ns, answer, PROVIDER_TIMEOUT_MS)
    took_s = (at_ns - begun_ns) / NS_PER_S
    trip.measure(PROVIDER_LATENCY, span, at_ns, took_s, (("provider", "paywell"),))
    if status == TIMED_OUT:
        kind, message, trace = PROVIDER_TIMEOUT
        raise_in(span, at_ns, kind, message, trace)
        facts = {"exception.type": kind, "exception.stacktrace": trace}
        trip.log(span, at_ns, ERROR, f"provider did not answer: {message}\n{trace}", facts)
        return at_ns, DEADLINE_EXCEEDED
    if status == DECLINED:
        said: dict[str, str | int] = {"event": "declined", "method": card, "code": "do_not_honor"}
        trip.log(span, at_ns, WARN, said)
        return at_ns, FAILED_PRECONDITION
    trip.log(span, at_ns, INFO, {"event": "charged", "method": card, "took_s": round(took_s, 3)})
    return at_ns, OK


CHARGE = Method(
    service=PAYMENT,
    rpc="shop.Payment",
    name="Charge",
    handle=_charge,
    timeout_ms=CHARGE_TIMEOUT_MS,
)


# Shipping.


def _quote(trip: RequestTrace, span: OpenSpan, at_ns: int) -> Done:
    at_ns = trip.after(at_ns, span.pod, 6.0)
    if trip.chance(BAD_ADDRESS_SHARE):
        kind, message, trace = ADDRESS_ERROR
        raise_in(span, at_ns, kind, message, trace)
        trip.log(span, at_ns, ERROR, f"quote failed\n{trace}", {"exception.type": kind})
        return at_ns, FAILED
    return at_ns, FOUND


QUOTE = Route(service=SHIPPING, method="POST", route="/quotes", handle=_quote)


# Checkout.


def _place_order(trip: RequestTrace, span: OpenSpan, at_ns: int) -> Done:
    at_ns, _ = call_rpc(trip, span, GET_CART, trip.after(at_ns, span.pod, 1.0))
    sku = f"sku-{trip.rand.randrange(PRODUCT_COUNT):04d}"
    at_ns, stock = call_http(trip, span, CHECK_STOCK, f"/stock/{sku}", at_ns)
    if stock != FOUND:
        trip.log(span, at_ns, WARN, f"order refused, {sku} is out of stock", {"product.id": sku})
        return at_ns, CONFLICT
    at_ns, status = _price(trip, span, at_ns)
    if status != FOUND:
        return at_ns, status
    total = round(trip.rand.lognormvariate(3.7, 0.6), 2)
    at_ns, code = call_rpc(trip, span, CHARGE, at_ns, tries=2)
    if code != OK:
        trip.log(span, at_ns, ERROR if code == DEADLINE_EXCEEDED else INFO, "not charged")
        return at_ns, TIMED_OUT if code == DEADLINE_EXCEEDED else DECLINED
    return _complete(trip, span, at_ns, total), CREATED


def _price(trip: RequestTrace, span: OpenSpan, at_ns: int) -> Done:
    """What the order costs: vouchers, and the way to the customer."""
    pricing = trip.begin(span.pod, "price order", INTERNAL, at_ns, span)
    at_ns, status = trip.after(at_ns, span.pod, 2.0), FOUND
    if trip.scene.is_checkout_faulty and trip.chance(FAULT_SHARE):
        kind, message, trace = VOUCHER_ERROR
        raise_in(pricing, at_ns, kind, message, trace)
        facts = {"exception.type": kind, "exception.stacktrace": trace}
        trip.log(pricing, at_ns, ERROR, f"{message}\n{trace}", facts)
        status = FAILED
    else:
        at_ns, status = call_http(trip, pricing, QUOTE, "/quotes", at_ns)
    if status != FOUND:
        pricing.fail("the order has no price")
    trip.end(pricing, at_ns)
    return at_ns, status


def _complete(trip: RequestTrace, span: OpenSpan, at_ns: int, total: float) -> int:
    """All is well: keep the order, count it, tell others."""
    at_ns = ask_database(trip, span, SAVE_ORDER, at_ns, 5.0)
    order = f"order-{trip.rand.getrandbits(40):010x}"
    facts: Facts = {"shop.order.id": order, "shop.order.total": total}
    span.parts.extend(_uncached(facts))
    at_ns = announce(trip, span, order, at_ns)
    trip.measure(ORDERS, span, at_ns, 1, (("currency", CURRENCY),))
    trip.measure(REVENUE, span, at_ns, total, (("currency", CURRENCY),))
    said: dict[str, str | float] = {"event": "order placed", "order": order, "total": total}
    trip.log(span, at_ns, INFO, said, {"shop.order.id": order})
    return at_ns


def _uncached(facts: Facts) -> list[bytes]:
    """Attributes that no other span will have."""
    return [protobuf.pair(ATTRIBUTES, key, value) for key, value in facts.items()]


PLACE_ORDER = Route(
    service=CHECKOUT,
    method="POST",
    route="/orders",
    handle=_place_order,
    timeout_ms=ORDER_TIMEOUT_MS,
)


# Gateway and storefront.


def _api_order(trip: RequestTrace, span: OpenSpan, at_ns: int) -> Done:
    return call_http(trip, span, PLACE_ORDER, "/orders", at_ns)


API_ORDER = Route(service=GATEWAY, method="POST", route="/api/orders", handle=_api_order)


def _order(trip: RequestTrace, span: OpenSpan, at_ns: int) -> Done:
    at_ns, status = call_http(trip, span, API_ORDER, "/api/orders", at_ns)
    if status >= FAILED:
        trip.log(span, at_ns, ERROR, f"checkout failed with {status}", {"http.status": status})
    return trip.after(at_ns, span.pod, 2.0), status


ORDER_PAGE = Route(service=STOREFRONT, method="POST", route="/checkout", handle=_order)
