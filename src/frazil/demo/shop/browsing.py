"""Pages before the checkout: home, product, search, cart."""

from __future__ import annotations

from frazil.demo.services import CART, GATEWAY, RECOMMENDATION, STOREFRONT
from frazil.demo.shop.calls import (
    OK,
    Done,
    Method,
    Route,
    call_http,
    call_rpc,
    query_database,
    raise_in,
)
from frazil.demo.shop.catalogue import (
    CHECK_STOCK,
    FOUND,
    LIST,
    ONE,
    PRODUCT_COUNT,
    REDIS,
    SEARCH,
    query,
)
from frazil.demo.shop.exceptions import TEMPLATE_ERROR
from frazil.demo.telemetry.instruments import CARTS_OPEN
from frazil.demo.telemetry.request_trace import (
    DEBUG,
    ERROR,
    INFO,
    INTERNAL,
    TRACE,
    WARN,
    OpenSpan,
    RequestTrace,
)

TEMPLATE_ERROR_SHARE = 0.004
CREATED, NOT_FOUND, FAILED = 201, 404, 500

CART_ADD = query(REDIS, "HINCRBY", "cart", "HINCRBY ? ? ?")
CART_GET = query(REDIS, "HGETALL", "cart", "HGETALL ?")


# Recommendation, which logs too much.


def _recommend(trace: RequestTrace, span: OpenSpan, at_ns: int) -> Done:
    model = trace.begin(span.pod, "rank candidates", INTERNAL, at_ns, span)
    candidate_count = trace.rand.randrange(2, 5)
    for _ in range(candidate_count):
        at_ns = trace.after(at_ns, span.pod, 1.5)
        score = round(trace.rand.random(), 3)
        sku = f"sku-{trace.rand.randrange(PRODUCT_COUNT):04d}"
        severity = TRACE if score < 0.3 else DEBUG
        trace.log(model, at_ns, severity, f"scored {sku}: {score}")
    model.say({"shop.candidates": candidate_count})
    trace.end(model, at_ns)
    return trace.after(at_ns, span.pod, 0.5), OK


RECOMMEND = Method(
    service=RECOMMENDATION, rpc="shop.Recommendation", name="List", handle=_recommend
)


# Cart.


def _add_item(trace: RequestTrace, span: OpenSpan, at_ns: int) -> Done:
    at_ns = query_database(trace, span, CART_ADD, at_ns, 0.7)
    if trace.chance(0.5):
        trace.measure(CARTS_OPEN, span, at_ns, 1)
    trace.log(span, at_ns, INFO, "item added to cart", {"cart.items": trace.rand.randrange(1, 6)})
    return at_ns, OK


def _get_cart(trace: RequestTrace, span: OpenSpan, at_ns: int) -> Done:
    return query_database(trace, span, CART_GET, at_ns, 0.8), OK


ADD_ITEM = Method(service=CART, rpc="shop.Cart", name="AddItem", handle=_add_item)
GET_CART = Method(service=CART, rpc="shop.Cart", name="GetCart", handle=_get_cart)


# Gateway.


def _api_home(trace: RequestTrace, span: OpenSpan, at_ns: int) -> Done:
    at_ns, status = call_http(trace, span, LIST, "/products", at_ns, tries=2)
    at_ns, _ = call_rpc(trace, span, RECOMMEND, at_ns)
    return at_ns, status


def _api_product(trace: RequestTrace, span: OpenSpan, at_ns: int) -> Done:
    at_ns, status = call_http(trace, span, ONE, f"/products/{_product(trace)}", at_ns, tries=2)
    if status < FAILED:
        at_ns, _ = call_rpc(trace, span, RECOMMEND, at_ns)
    return at_ns, status


def _api_search(trace: RequestTrace, span: OpenSpan, at_ns: int) -> Done:
    return call_http(trace, span, SEARCH, "/search", at_ns)


def _api_add(trace: RequestTrace, span: OpenSpan, at_ns: int) -> Done:
    at_ns, status = call_http(trace, span, CHECK_STOCK, f"/stock/{_product(trace)}", at_ns)
    if status != FOUND:
        return at_ns, status
    at_ns, _ = call_rpc(trace, span, ADD_ITEM, at_ns)
    return at_ns, CREATED


API_HOME = Route(service=GATEWAY, method="GET", route="/api/home", handle=_api_home)
API_PRODUCT = Route(service=GATEWAY, method="GET", route="/api/products/{id}", handle=_api_product)
API_SEARCH = Route(service=GATEWAY, method="GET", route="/api/search", handle=_api_search)
API_ADD = Route(service=GATEWAY, method="POST", route="/api/cart/items", handle=_api_add)


# Storefront.


def _page(trace: RequestTrace, span: OpenSpan, at_ns: int, api: Route, path: str) -> Done:
    """Call the gateway, then render its response."""
    at_ns, status = call_http(trace, span, api, path, trace.after(at_ns, span.pod, 0.8))
    if status >= FAILED:
        trace.log(span, at_ns, ERROR, f"no page: {path} answered {status}")
        return at_ns, status
    render = trace.begin(span.pod, "render", INTERNAL, at_ns, span)
    at_ns = trace.after(at_ns, span.pod, 3.0)
    if trace.chance(TEMPLATE_ERROR_SHARE):
        kind, message, stack = TEMPLATE_ERROR
        raise_in(render, at_ns, kind, message, stack)
        render.fail(message)
        trace.log(span, at_ns, ERROR, f"{message}\n{stack}", {"exception.type": kind})
        status = FAILED
    trace.end(render, at_ns)
    return at_ns, status


def _home(trace: RequestTrace, span: OpenSpan, at_ns: int) -> Done:
    return _page(trace, span, at_ns, API_HOME, "/api/home")


def _product_page(trace: RequestTrace, span: OpenSpan, at_ns: int) -> Done:
    return _page(trace, span, at_ns, API_PRODUCT, f"/api/products/{_product(trace)}")


def _search_page(trace: RequestTrace, span: OpenSpan, at_ns: int) -> Done:
    return _page(trace, span, at_ns, API_SEARCH, "/api/search")


def _add_page(trace: RequestTrace, span: OpenSpan, at_ns: int) -> Done:
    return _page(trace, span, at_ns, API_ADD, "/api/cart/items")


def _nothing(trace: RequestTrace, span: OpenSpan, at_ns: int) -> Done:
    trace.log(span, at_ns, WARN, "no such page")
    return trace.after(at_ns, span.pod, 0.4), NOT_FOUND


HOME = Route(service=STOREFRONT, method="GET", route="/", handle=_home)
PRODUCT_PAGE = Route(service=STOREFRONT, method="GET", route="/products/{id}", handle=_product_page)
SEARCH_PAGE = Route(service=STOREFRONT, method="GET", route="/search", handle=_search_page)
ADD_PAGE = Route(service=STOREFRONT, method="POST", route="/cart", handle=_add_page)
NO_PAGE = Route(service=STOREFRONT, method="GET", route="/*", handle=_nothing)


def _product(trace: RequestTrace) -> str:
    return f"sku-{trace.rand.randrange(PRODUCT_COUNT):04d}"
