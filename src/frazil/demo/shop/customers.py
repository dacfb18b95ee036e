"""Customers: which pages they request."""

from __future__ import annotations

from itertools import accumulate

from frazil.demo.incidents import ShopState
from frazil.demo.services import Fleet
from frazil.demo.shop.browsing import ADD_PAGE, HOME, NO_PAGE, PRODUCT_PAGE, SEARCH_PAGE
from frazil.demo.shop.calls import Route, serve_http
from frazil.demo.shop.catalogue import random_product
from frazil.demo.shop.checkout import ORDER_PAGE
from frazil.demo.telemetry.request_trace import RequestTrace
from frazil.model import Rand

PAGES: tuple[tuple[Route, float], ...] = (
    (HOME, 0.27),
    (PRODUCT_PAGE, 0.37),
    (SEARCH_PAGE, 0.14),
    (ADD_PAGE, 0.13),
    (ORDER_PAGE, 0.07),
    (NO_PAGE, 0.02),
)
"""Page -> its share of the requests."""
ROUTES = [page for page, _ in PAGES]
SHARES = list(accumulate(share for _, share in PAGES))
BROWSERS = (
    "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/138.0.0.0 Safari/537.36",
)
BAD_PATHS = ("/wp-login.php", "/.env", "/admin.php", "/favicon-old.ico")


def visit(fleet: Fleet, state: ShopState, rand: Rand, at_ns: int) -> RequestTrace:
    """Let one customer request one page."""
    trace = RequestTrace(fleet, state, rand, at_ns)
    page = rand.choices(ROUTES, cum_weights=SHARES)[0]
    path = page.route
    if page is NO_PAGE:
        path = rand.choice(BAD_PATHS)
    elif page is PRODUCT_PAGE:
        path = f"/products/{random_product(trace)}"
    more = {
        "client.address": f"203.0.113.{rand.randrange(1, 255)}",
        "user_agent.original": rand.choice(BROWSERS),
    }
    serve_http(trace, page, path, at_ns, None, **more)
    return trace
