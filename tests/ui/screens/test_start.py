"""The start page: setup steps until data arrives, then failures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from playwright.sync_api import Browser, Page, expect

from tests.clients.node import Node
from tests.ui.helpers.page import THEMES, Theme, accessibility_violations, open_page
from tests.ui.helpers.responses import HOSTILE, alter_response


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Node]:
    """A node without data."""
    with Node(tmp_path / "data", "--set", "lake.enabled=false") as started:
        yield started


def make_empty(found: dict[str, Any]) -> None:
    """Change a status to that of a node without data."""
    for signal in found["ingest"]["signals"]:
        signal["accepted_records"] = 0
    for topic in found["log"]["topics"]:
        for part in topic["partitions"]:
            part["durable_watermark"] = 0
    found["hot"]["rows"] = {}


def test_the_first_span_switches_the_page_to_the_overview(browser: Browser, empty: Node) -> None:
    """The demo can then be started and stopped."""
    with open_page(browser, empty.url) as page:
        page.goto("/")
        expect(page.get_by_role("heading", name="Waiting for the first signal")).to_be_visible()
        expect(page.get_by_text(f"http://127.0.0.1:{empty.grpc_port}")).to_be_visible()
        endpoint = f"http://127.0.0.1:{empty.http_port}"
        expect(page.get_by_label("Configure the exporter", exact=True)).to_contain_text(endpoint)
        provider = TracerProvider(resource=Resource({"service.name": "checkout"}))
        exporter = OTLPSpanExporter(endpoint=f"{endpoint}/v1/traces")
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        provider.get_tracer("test").start_span("first").end()
        provider.shutdown()
        first = page.get_by_role("status").filter(has_text="First signal: 1 span from checkout")
        expect(first).to_be_visible()
        expect(first.get_by_role("link", name="checkout")).to_have_attribute(
            "href", re.compile(r"/traces\?is=service_name%3Dcheckout")
        )
        expect(page.get_by_role("heading", name="No errors")).to_be_visible()
        page.get_by_role("button", name="Send demo data").click()
        stop = page.get_by_role("button", name="Stop demo")
        expect(stop).to_be_visible()
        expect(page.get_by_role("row").filter(has_text="gateway").first).to_be_visible()
        stop.click()
        expect(page.get_by_role("button", name="Send demo data")).to_be_enabled()


def test_setup_steps_follow_the_language_and_are_copied(page: Page) -> None:
    """The selection is in the address; a required token is mentioned."""

    def guard(found: dict[str, Any]) -> None:
        make_empty(found)
        found["ingest"]["needs_token"] = True

    alter_response(page, "status", guard)
    page.goto("/")
    page.get_by_role("link", name="Java", exact=True).click()
    page.get_by_role("link", name="OTLP/gRPC").click()
    expect(page).to_have_url(re.compile("language=java&by=grpc"))
    expect(page.get_by_text("-javaagent:")).to_be_visible()
    expect(page.get_by_text("requires a token")).to_be_visible()
    page.get_by_role("button", name="Copy Configure the exporter").click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert "OTEL_EXPORTER_OTLP_PROTOCOL=grpc" in copied
    assert "Bearer%20YOUR_TOKEN" in copied
    page.go_back()
    expect(page).to_have_url(re.compile(r"language=java$"))
    page.reload()
    expect(page.get_by_label("Configure the exporter", exact=True)).to_contain_text("http/protobuf")


def test_a_refused_demo_shows_the_reason(page: Page) -> None:
    alter_response(page, "demo", lambda found: found.update(refusal="OTLP asks for a token here"))
    page.goto("/")
    expect(page.get_by_text("OTLP asks for a token here")).to_be_visible()
    expect(page.get_by_role("button", name="Send demo data")).to_be_hidden()


def test_the_overview_shows_current_failures(page: Page) -> None:
    """They link to a trace and to logs."""
    page.goto("/")
    fails = page.get_by_role("region", name=re.compile("services have failed requests"))
    expect(fails).to_contain_text("no answer within 1500 ms")
    services = page.get_by_role("region", name="Services in the last hour")
    logs = services.get_by_role("row").filter(has_text="payment").get_by_role("link").last
    expect(logs).to_have_attribute(
        "href", re.compile(r"/logs\?is=service_name%3Dpayment&is=severity%3DERROR")
    )
    fails.get_by_role("link", name=re.compile("latest of payment")).first.click()
    expect(page).to_have_url(re.compile("/trace/[0-9a-f]{32}"))


def test_every_screen_is_linked(page: Page) -> None:
    page.goto("/")
    ways = page.get_by_role("list", name="All screens")
    expect(ways.get_by_role("link")).to_have_count(12)
    ways.get_by_role("link", name="Lake").click()
    expect(page.get_by_role("heading", name="Lake", level=1)).to_be_visible()


@pytest.mark.parametrize("theme", THEMES)
def test_the_empty_and_the_filled_page_are_accessible(
    browser: Browser, node: Node, theme: Theme
) -> None:
    with open_page(browser, node.url, theme=theme) as page:
        page.goto("/?settings=1")
        expect(page.get_by_role("link", name=re.compile("Open trace")).first).to_be_visible()
        assert accessibility_violations(page) == []
        alter_response(page, "status", make_empty)
        page.goto("/")
        expect(page.get_by_role("heading", name="Waiting for the first signal")).to_be_visible()
        expect(page.get_by_role("button", name="Send demo data")).to_be_enabled()
        assert accessibility_violations(page) == []


def test_hostile_names_are_shown_as_text(browser: Browser, node: Node) -> None:
    """On a phone."""

    def rename(found: dict[str, Any]) -> None:
        for failure in found["failures"]:
            failure |= {"service": HOSTILE, "message": HOSTILE}

    with open_page(browser, node.url, width=360) as page:
        alter_response(page, "failures*", rename)
        alter_response(page, "services*", lambda found: found["services"][0].update(name=HOSTILE))
        page.goto("/")
        expect(page.get_by_text("<img src=x").first).to_be_visible()
        expect(page.get_by_text("⟨U+202E⟩").first).to_be_visible()
        assert page.evaluate("document.querySelectorAll('#screen img').length") == 0
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
