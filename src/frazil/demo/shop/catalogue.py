"""Catalogue: products, search and stock, in a database behind a cache."""

from __future__ import annotations

from frazil.demo.services import CATALOGUE
from frazil.demo.shop.calls import DatabaseQuery, Done, Route, query_database
from frazil.demo.telemetry.request_trace import NS_PER_S, Attributes, OpenSpan, RequestTrace

PRODUCT_COUNT = 400
WORDS = ("lamp", "chair", "red shoes", "kettle", "rain coat", "desk", "tea", "notebook")
CACHE_HIT_SHARE, COLD_HIT_SHARE = 0.85, 0.05
NO_INDEX_SHARE = 0.06
"""Searches that scan the whole table."""
SLOW_QUERY_MS = 500
OUT_OF_STOCK_SHARE = 0.04
FOUND, CONFLICT = 200, 409

POSTGRES = ("postgresql", "postgres.shop", 5432)
REDIS = ("redis", "redis.shop", 6379)

LIST_PRODUCTS = DatabaseQuery(
    POSTGRES,
    "SELECT",
    "products",
    "SELECT id, name, price FROM products WHERE featured ORDER BY rank LIMIT ?",
)
ONE_PRODUCT = DatabaseQuery(POSTGRES, "SELECT", "products", "SELECT * FROM products WHERE id = ?")
SEARCH_PRODUCTS = DatabaseQuery(
    POSTGRES,
    "SELECT",
    "products",
    "SELECT id, name, price FROM products WHERE name ILIKE ? OR description ILIKE ? LIMIT ?",
)
STOCK = DatabaseQuery(POSTGRES, "SELECT", "stock", "SELECT amount FROM stock WHERE product_id = ?")
CACHED_PRODUCT = DatabaseQuery(REDIS, "GET", "product", "GET ?")


def random_product(trace: RequestTrace) -> str:
    return f"sku-{trace.rand.randrange(PRODUCT_COUNT):04d}"


def _list_products(trace: RequestTrace, span: OpenSpan, at_ns: int) -> Done:
    at_ns = trace.after(at_ns, span.pod, 1.0)
    at_ns = query_database(trace, span, LIST_PRODUCTS, at_ns, 4.0, returned_rows=24)
    return trace.after(at_ns, span.pod, 1.0), FOUND


def _one_product(trace: RequestTrace, span: OpenSpan, at_ns: int) -> Done:
    at_ns = query_database(trace, span, CACHED_PRODUCT, at_ns, 0.6)
    share = COLD_HIT_SHARE if trace.state.is_cache_cold else CACHE_HIT_SHARE
    is_hit = trace.chance(share)
    span.say({"cache.hit": is_hit})
    if not is_hit:
        trace.log(span, at_ns, "DEBUG", "cache miss, asking the database")
        at_ns = query_database(trace, span, ONE_PRODUCT, at_ns, 9.0, returned_rows=1)
    return trace.after(at_ns, span.pod, 0.8), FOUND


def _search(trace: RequestTrace, span: OpenSpan, at_ns: int) -> Done:
    is_slow = trace.chance(NO_INDEX_SHARE)
    word = trace.rand.choice(WORDS)
    start_ns = at_ns
    row_count = trace.rand.randrange(0, 40)
    median_ms = 1300.0 if is_slow else 14.0
    at_ns = query_database(trace, span, SEARCH_PRODUCTS, at_ns, median_ms, returned_rows=row_count)
    took_ms = (at_ns - start_ns) * 1000 // NS_PER_S
    if took_ms > SLOW_QUERY_MS:
        attributes: Attributes = {
            "db.query.text": SEARCH_PRODUCTS.text,
            "duration_ms": took_ms,
            "plan": "Seq Scan",
        }
        trace.log(span, at_ns, "WARN", f"slow query: {took_ms} ms, no index was used", attributes)
    body: dict[str, str | int] = {"event": "search", "word": word, "found": row_count}
    trace.log(span, at_ns, "INFO", body)
    return trace.after(at_ns, span.pod, 1.2), FOUND


def _stock(trace: RequestTrace, span: OpenSpan, at_ns: int) -> Done:
    at_ns = query_database(trace, span, STOCK, at_ns, 2.0, returned_rows=1)
    if trace.chance(OUT_OF_STOCK_SHARE):
        trace.log(span, at_ns, "WARN", "out of stock", {"product.stock": 0})
        return at_ns, CONFLICT
    return at_ns, FOUND


LIST = Route(CATALOGUE, "GET", "/products", _list_products)
ONE = Route(CATALOGUE, "GET", "/products/{id}", _one_product, timeout_ms=800)
SEARCH = Route(CATALOGUE, "GET", "/search", _search)
CHECK_STOCK = Route(CATALOGUE, "GET", "/stock/{id}", _stock)
