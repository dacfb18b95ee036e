"""Pages before the checkout: home, product, search, cart."""

from __future__ import annotations

from frazil.demo.services import CART, GATEWAY, RECOMMENDATION, STOREFRONT
from frazil.demo.shop.calls import (
    OK,
    DatabaseQuery,
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
    REDIS,
    SEARCH,
    random_product,
)
from frazil.demo.shop.exceptions import TEMPLATE_ERROR
from frazil.demo.telemetry.instruments import CARTS_OPEN
from frazil.demo.telemetry.request_trace import OpenSpan, RequestTrace

TEMPLATE_ERROR_SHARE = 0.004
CREATED, NOT_FOUND, FAILED = 201, 404, 500

CART_ADD = DatabaseQuery(REDIS, "HINCRBY", "cart", "HINCRBY ? ? ?")
CART_GET = DatabaseQuery(REDIS, "HGETALL", "cart", "HGETALL ?")


# Recommendation, which logs too much.


def _recommend(trace: RequestTrace, span: OpenSpan, at_ns: int) -> Done:
    model = trace.begin(span.pod, "rank candidates", "INTERNAL", at_ns, span)
    candidate_count = trace.rand.randrange(2, 5)
    for _ in range(candidate_count):
        at_ns = trace.after(at_ns, span.pod, 1.5)
        score = round(trace.rand.random(), 3)
        sku = random_product(trace)
        trace.log(model, at_ns, "TRACE" if score < 0.3 else "DEBUG", f"scored {sku}: {score}")
    model.say({"shop.candidates": candidate_count})
    trace.end(model, at_ns)
    return trace.after(at_ns, span.pod, 0.5), OK


RECOMMEND = Method(RECOMMENDATION, "shop.Recommendation", "List", _recommend)


# Cart.


def _add_item(trace: RequestTrace, span: OpenSpan, at_ns: int) -> Done:
    at_ns = query_database(trace, span, CART_ADD, at_ns, 0.7)
    if trace.chance(0.5):
        trace.measure(CARTS_OPEN, span, at_ns, 1)
    trace.log(span, at_ns, "INFO", "item added to cart", {"cart.items": trace.rand.randrange(1, 6)})
    return at_ns, OK


def _get_cart(trace: RequestTrace, span: OpenSpan, at_ns: int) -> Done:
    return query_database(trace, span, CART_GET, at_ns, 0.8), OK


ADD_ITEM = Method(CART, "shop.Cart", "AddItem", _add_item)
GET_CART = Method(CART, "shop.Cart", "GetCart", _get_cart)


# Gateway.


def _api_home(trace: RequestTrace, span: OpenSpan, at_ns: int) -> Done:
    at_ns, status = call_http(trace, span, LIST, "/products", at_ns, tries=2)
    at_ns, _ = call_rpc(trace, span, RECOMMEND, at_ns)
    return at_ns, status


def _api_product(trace: RequestTrace, span: OpenSpan, at_ns: int) -> Done:
    path = f"/products/{random_product(trace)}"
    at_ns, status = call_http(trace, span, ONE, path, at_ns, tries=2)
    if status < FAILED:
        at_ns, _ = call_rpc(trace, span, RECOMMEND, at_ns)
    return at_ns, status


def _api_search(trace: RequestTrace, span: OpenSpan, at_ns: int) -> Done:
    return call_http(trace, span, SEARCH, "/search", at_ns)


def _api_add(trace: RequestTrace, span: OpenSpan, at_ns: int) -> Done:
    at_ns, status = call_http(trace, span, CHECK_STOCK, f"/stock/{random_product(trace)}", at_ns)
    if status != FOUND:
        return at_ns, status
    at_ns, _ = call_rpc(trace, span, ADD_ITEM, at_ns)
    return at_ns, CREATED


API_HOME = Route(GATEWAY, "GET", "/api/home", _api_home)
API_PRODUCT = Route(GATEWAY, "GET", "/api/products/{id}", _api_product)
API_SEARCH = Route(GATEWAY, "GET", "/api/search", _api_search)
API_ADD = Route(GATEWAY, "POST", "/api/cart/items", _api_add)


# Storefront.


def _page(trace: RequestTrace, span: OpenSpan, at_ns: int, api: Route, path: str) -> Done:
    """Call the gateway, then render its response."""
    at_ns, status = call_http(trace, span, api, path, trace.after(at_ns, span.pod, 0.8))
    if status >= FAILED:
        trace.log(span, at_ns, "ERROR", f"no page: {path} answered {status}")
        return at_ns, status
    render = trace.begin(span.pod, "render", "INTERNAL", at_ns, span)
    at_ns = trace.after(at_ns, span.pod, 3.0)
    if trace.chance(TEMPLATE_ERROR_SHARE):
        kind, message, stack = TEMPLATE_ERROR
        raise_in(render, at_ns, TEMPLATE_ERROR)
        render.fail(message)
        trace.log(span, at_ns, "ERROR", f"{message}\n{stack}", {"exception.type": kind})
        status = FAILED
    trace.end(render, at_ns)
    return at_ns, status


def _home(trace: RequestTrace, span: OpenSpan, at_ns: int) -> Done:
    return _page(trace, span, at_ns, API_HOME, "/api/home")


def _product_page(trace: RequestTrace, span: OpenSpan, at_ns: int) -> Done:
    return _page(trace, span, at_ns, API_PRODUCT, f"/api/products/{random_product(trace)}")


def _search_page(trace: RequestTrace, span: OpenSpan, at_ns: int) -> Done:
    return _page(trace, span, at_ns, API_SEARCH, "/api/search")


def _add_page(trace: RequestTrace, span: OpenSpan, at_ns: int) -> Done:
    return _page(trace, span, at_ns, API_ADD, "/api/cart/items")


def _nothing(trace: RequestTrace, span: OpenSpan, at_ns: int) -> Done:
    trace.log(span, at_ns, "WARN", "no such page")
    return trace.after(at_ns, span.pod, 0.4), NOT_FOUND


HOME = Route(STOREFRONT, "GET", "/", _home)
PRODUCT_PAGE = Route(STOREFRONT, "GET", "/products/{id}", _product_page)
SEARCH_PAGE = Route(STOREFRONT, "GET", "/search", _search_page)
ADD_PAGE = Route(STOREFRONT, "POST", "/cart", _add_page)
NO_PAGE = Route(STOREFRONT, "GET", "/*", _nothing)
