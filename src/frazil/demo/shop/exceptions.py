"""Exceptions of the shop: type, message, stack trace."""

from __future__ import annotations

TEMPLATE_ERROR = (
    "TypeError",
    "Cannot read properties of undefined (reading 'price')",
    "TypeError: Cannot read properties of undefined (reading 'price')\n"
    "    at renderProduct (/app/src/views/product.js:48:31)\n"
    "    at Array.map (<anonymous>)\n"
    "    at renderPage (/app/src/views/page.js:17:24)\n"
    "    at process.processTicksAndRejections (node:internal/process/task_queues:105:5)",
)
VOUCHER_ERROR = (
    "runtime.Error",
    "runtime error: index out of range [0] with length 0",
    "panic: runtime error: index out of range [0] with length 0\n\n"
    "goroutine 4182 [running]:\n"
    "shop/checkout/internal/voucher.(*Set).First(...)\n"
    "\t/src/internal/voucher/set.go:37\n"
    "shop/checkout/internal/order.(*Placer).Place(0xc0001a4000, {0xc41f30, 0xc0004e2f90})\n"
    "\t/src/internal/order/place.go:112 +0x3c5\n"
    "main.(*server).PlaceOrder(0xc00011c3f0)\n"
    "\t/src/main.go:88 +0x1d2",
)
PROVIDER_TIMEOUT = (
    "java.net.http.HttpTimeoutException",
    "request timed out",
    "java.net.http.HttpTimeoutException: request timed out\n"
    "\tat java.net.http/jdk.internal.net.http.HttpClientImpl.send(HttpClientImpl.java:955)\n"
    "\tat shop.payment.provider.ProviderClient.charge(ProviderClient.java:74)\n"
    "\tat shop.payment.ChargeService.charge(ChargeService.java:41)\n"
    "\tat io.grpc.stub.ServerCalls$UnaryServerCallHandler.onHalfClose(ServerCalls.java:182)\n"
    "Caused by: java.net.http.HttpConnectTimeoutException: HTTP connect timed out\n"
    "\t... 12 more",
)
ADDRESS_ERROR = (
    "KeyError",
    "'postcode'",
    "Traceback (most recent call last):\n"
    '  File "/app/shipping/routes.py", line 61, in quote\n'
    "    zone = zone_of(address)\n"
    '  File "/app/shipping/zones.py", line 23, in zone_of\n'
    '    return ZONES[address["postcode"][:2]]\n'
    "KeyError: 'postcode'",
)
OUT_OF_MEMORY = (
    "Traceback (most recent call last):\n"
    '  File "/app/recommendation/model.py", line 142, in load\n'
    "    weights = numpy.concatenate(shards)\n"
    "MemoryError: Unable to allocate 412. MiB for an array with shape (54001664,)"
)
