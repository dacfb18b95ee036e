"""Templates of labels and annotations, as Go prints them."""

from __future__ import annotations

import pytest

from frazil.errors import Malformed
from frazil.rules.template.evaluate import TemplateValues, compile_template

VALUES = TemplateValues(
    labels={"job": "api", "instance": "web-1.example:9090", "code": "500"},
    value=1234567.5,
    external_labels={"region": "eu"},
    external_url="http://page",
)


PRINTED = '1.00|   42|a   |"b"|true|%'


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("plain }} text", "plain }} text"),
        ("{{ $value }} {{ $labels.job }} {{ .Labels.none }}|", "1.2345675e+06 api |"),
        ("a {{- 1 -}} b {{/* no */}}c", "a1b c"),
        ("{{ $externalLabels.region }} {{ $externalURL }}", "eu http://page"),
        ("{{ $value | humanize }} {{ humanize1024 2097152.0 }}", "1.235M 2Mi"),
        ("{{ humanize 0.00012 }} {{ humanize 0.0 }} {{ humanize -1500.0 }}", "120u 0 -1.5k"),
        ("{{ humanizeDuration 90061.0 }} {{ humanizeDuration 0.0025 }}", "1d 1h 1m 1s 2.5ms"),
        ("{{ humanizePercentage 0.12345 }}", "12.35%"),
        ("{{ humanizeTimestamp 1435065584.128 }}", "2015-06-23 13:19:44.128 +0000 UTC"),
        (
            '{{ printf "%.2f|%5d|%-4s|%q|%v|%%" 1.005 42 "a" "b" true }}',
            PRINTED,
        ),
        ('{{ printf "%d %s" 1.5 2 }}', "%!d(float64=1.5) %!s(int=2)"),
        ('{{ if eq $labels.code "500" }}bad{{ else }}good{{ end }}', "bad"),
        ("{{ if gt $value 2e6 }}a{{ else if lt 1 2 }}b{{ else }}c{{ end }}", "b"),
        ('{{ if and (match "^w" $labels.instance) (not false) }}yes{{ end }}', "yes"),
        ("{{ stripPort .Labels.instance }}", "web-1.example"),
        ("{{ $labels.instance | stripDomain }}", "web-1:9090"),
        ('{{ reReplaceAll "(\\\\w+)-(\\\\d).*" "$2${1}$$" $labels.instance }}', "1web$"),
        ('{{ toUpper "a" }}{{ title "ab cd" }}{{ len "abc" }}', "AAb Cd3"),
        ('{{ index $labels "job" }} {{ parseDuration "1h" }}', "api 3600"),
        ("{{ 1000000.0 }} {{ 123456.0 }} {{ 0.00001 }} {{ 0.0 }}", "1e+06 123456 1e-05 0"),
        ("{{ $labels }}", "map[code:500 instance:web-1.example:9090 job:api]"),
    ],
)
def test_a_template_is_expanded(text: str, wanted: str) -> None:
    assert compile_template(text).expand(VALUES) == wanted


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{{ $value", "does not end"),
        ('{{ "a }}', "does not end"),
        ("{{ }}x{{ end }}", "has no if before it"),
        ("{{ if true }}x", "has no {{ end }}"),
        ("{{ range $labels }}{{ end }}", "{{ range }} is not supported"),
        ("{{ $nothing }}", "$nothing is not known"),
        ("{{ .Foo }}", ".Foo is not known"),
        ("{{ $labels.a.b }}", "labels.a.b is not known"),
        ("{{ shout 1 }}", "there is no function shout"),
        ('{{ query "up" }}', "they run no queries"),
        ("{{ 1 2 }}", "'2' is one too many"),
        ("{{ (1 }}", "a parenthesis does not end"),
        ("{{ 1 | 2 }}", "is not a function"),
        ("{{ % }}", "is not understood"),
    ],
)
def test_a_wrong_template_says_why(text: str, why: str) -> None:
    with pytest.raises(Malformed) as caught:
        compile_template(text)
    assert why in str(caught.value)


def test_a_template_that_fails_says_so() -> None:
    for text in ('{{ humanize "x" }}', "{{ eq 1 }}", '{{ match "(" "a" }}', "{{ len }}"):
        with pytest.raises(Malformed):
            compile_template(text).expand(VALUES)
