"""Checkout: the longest request, with the most ways to fail."""

from __future__ import annotations

from frazil.demo.services import CHECKOUT, GATEWAY, PAYMENT, SHIPPING, STOREFRONT
from frazil.demo.shop.browsing import CREATED, FAILED, GET_CART
from frazil.demo.shop.calls import (
    DEADLINE_EXCEEDED,
    FAILED_PRECONDITION,
    OK,
    TIMED_OUT,
    DatabaseQuery,
    Done,
    Method,
    Route,
    call_external,
    call_http,
    call_rpc,
    query_database,
    raise_in,
)
from frazil.demo.shop.catalogue import CHECK_STOCK, CONFLICT, FOUND, POSTGRES, random_product
from frazil.demo.shop.email import announce
from frazil.demo.shop.exceptions import ADDRESS_ERROR, PROVIDER_TIMEOUT, VOUCHER_ERROR
from frazil.demo.telemetry.instruments import ORDERS, PROVIDER_LATENCY, REVENUE
from frazil.demo.telemetry.request_trace import NS_PER_S, OpenSpan, RequestTrace

DECLINED = 402
DECLINED_SHARE = 0.04
SLOW_SHARE, USUALLY_SLOW_SHARE = 0.55, 0.003
"""Charges that time out at the provider: while it is slow, and otherwise."""
PROVIDER_TIMEOUT_MS, CHARGE_TIMEOUT_MS, ORDER_TIMEOUT_MS = 1500, 2000, 4500
FAULT_SHARE, BAD_ADDRESS_SHARE = 0.15, 0.004
PROVIDER = "api.paywell.example"
CURRENCY = "EUR"
CARDS = ("visa", "mastercard", "paypal", "invoice")

SAVE_ORDER = DatabaseQuery(
    POSTGRES, "INSERT", "orders", "INSERT INTO orders (id, customer_id, total) VALUES (?, ?, ?)"
)


# Payment.


def _charge(trace: RequestTrace, span: OpenSpan, at_ns: int) -> Done:
    card = trace.rand.choice(CARDS)
    span.say({"shop.payment.method": card})
    share = SLOW_SHARE if trace.state.is_payment_slow else USUALLY_SLOW_SHARE
    median_ms = 9000.0 if trace.chance(share) else 90.0
    start_ns = trace.after(at_ns, span.pod, 1.0)
    response = trace.after(start_ns, span.pod, median_ms), FOUND
    if trace.chance(DECLINED_SHARE):
        response = response[0], DECLINED
    url = f"https://{PROVIDER}/v2/charges"
    at_ns, status = call_external(
        trace, span, url, PROVIDER, start_ns, response, PROVIDER_TIMEOUT_MS
    )
    took_s = (at_ns - start_ns) / NS_PER_S
    trace.measure(PROVIDER_LATENCY, span, at_ns, took_s, (("provider", "paywell"),))
    if status == TIMED_OUT:
        kind, message, stack = PROVIDER_TIMEOUT
        raise_in(span, at_ns, PROVIDER_TIMEOUT)
        attributes = {"exception.type": kind, "exception.stacktrace": stack}
        trace.log(span, at_ns, "ERROR", f"provider did not answer: {message}\n{stack}", attributes)
        return at_ns, DEADLINE_EXCEEDED
    if status == DECLINED:
        body: dict[str, str | int] = {"event": "declined", "method": card, "code": "do_not_honor"}
        trace.log(span, at_ns, "WARN", body)
        return at_ns, FAILED_PRECONDITION
    trace.log(span, at_ns, "INFO", {"event": "charged", "method": card, "took_s": round(took_s, 3)})
    return at_ns, OK


CHARGE = Method(PAYMENT, "shop.Payment", "Charge", _charge, timeout_ms=CHARGE_TIMEOUT_MS)


# Shipping.


def _quote(trace: RequestTrace, span: OpenSpan, at_ns: int) -> Done:
    at_ns = trace.after(at_ns, span.pod, 6.0)
    if trace.chance(BAD_ADDRESS_SHARE):
        kind, _, stack = ADDRESS_ERROR
        raise_in(span, at_ns, ADDRESS_ERROR)
        trace.log(span, at_ns, "ERROR", f"quote failed\n{stack}", {"exception.type": kind})
        return at_ns, FAILED
    return at_ns, FOUND


QUOTE = Route(SHIPPING, "POST", "/quotes", _quote)


# Checkout.


def _place_order(trace: RequestTrace, span: OpenSpan, at_ns: int) -> Done:
    at_ns, _ = call_rpc(trace, span, GET_CART, trace.after(at_ns, span.pod, 1.0))
    sku = random_product(trace)
    at_ns, stock = call_http(trace, span, CHECK_STOCK, f"/stock/{sku}", at_ns)
    if stock != FOUND:
        trace.log(span, at_ns, "WARN", f"order refused, {sku} is out of stock", {"product.id": sku})
        return at_ns, CONFLICT
    at_ns, status = _price(trace, span, at_ns)
    if status != FOUND:
        return at_ns, status
    total = round(trace.rand.lognormvariate(3.7, 0.6), 2)
    at_ns, code = call_rpc(trace, span, CHARGE, at_ns, tries=2)
    if code != OK:
        trace.log(span, at_ns, "ERROR" if code == DEADLINE_EXCEEDED else "INFO", "not charged")
        return at_ns, TIMED_OUT if code == DEADLINE_EXCEEDED else DECLINED
    return _complete(trace, span, at_ns, total), CREATED


def _price(trace: RequestTrace, span: OpenSpan, at_ns: int) -> Done:
    """Price the order: vouchers and shipping."""
    pricing = trace.begin(span.pod, "price order", "INTERNAL", at_ns, span)
    at_ns, status = trace.after(at_ns, span.pod, 2.0), FOUND
    if trace.state.is_checkout_faulty and trace.chance(FAULT_SHARE):
        kind, message, stack = VOUCHER_ERROR
        raise_in(pricing, at_ns, VOUCHER_ERROR)
        attributes = {"exception.type": kind, "exception.stacktrace": stack}
        trace.log(pricing, at_ns, "ERROR", f"{message}\n{stack}", attributes)
        status = FAILED
    else:
        at_ns, status = call_http(trace, pricing, QUOTE, "/quotes", at_ns)
    if status != FOUND:
        pricing.fail("the order has no price")
    trace.end(pricing, at_ns)
    return at_ns, status


def _complete(trace: RequestTrace, span: OpenSpan, at_ns: int, total: float) -> int:
    """Save the order, count it and announce it."""
    at_ns = query_database(trace, span, SAVE_ORDER, at_ns, 5.0)
    order = f"order-{trace.rand.getrandbits(40):010x}"
    span.say_once({"shop.order.id": order, "shop.order.total": total})
    at_ns = announce(trace, span, order, at_ns)
    trace.measure(ORDERS, span, at_ns, 1, (("currency", CURRENCY),))
    trace.measure(REVENUE, span, at_ns, total, (("currency", CURRENCY),))
    body: dict[str, str | float] = {"event": "order placed", "order": order, "total": total}
    trace.log(span, at_ns, "INFO", body, {"shop.order.id": order})
    return at_ns


PLACE_ORDER = Route(CHECKOUT, "POST", "/orders", _place_order, timeout_ms=ORDER_TIMEOUT_MS)


# Gateway and storefront.


def _api_order(trace: RequestTrace, span: OpenSpan, at_ns: int) -> Done:
    return call_http(trace, span, PLACE_ORDER, "/orders", at_ns)


API_ORDER = Route(GATEWAY, "POST", "/api/orders", _api_order)


def _order(trace: RequestTrace, span: OpenSpan, at_ns: int) -> Done:
    at_ns, status = call_http(trace, span, API_ORDER, "/api/orders", at_ns)
    if status >= FAILED:
        trace.log(span, at_ns, "ERROR", f"checkout failed with {status}", {"http.status": status})
    return trace.after(at_ns, span.pod, 2.0), status


ORDER_PAGE = Route(STOREFRONT, "POST", "/checkout", _order)
