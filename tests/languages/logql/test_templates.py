# ruff: noqa: E501 # a case is a line
"""Templates write what Go's templates write with the functions that Loki documents."""

from __future__ import annotations

import pytest

from frazil.languages.logql.template_functions import TemplateFailure
from frazil.languages.logql.templates import TemplateScope, compile_template

SCOPE = TemplateScope(
    {"a": "b", "n": "12", "f": "2.5", "path": "/x/y?z=1", "t": "2026-11-19T10:20:30Z", "empty": ""},
    "hello error",
    1_790_000_000_123_456_789,
)

CASES = [
    ("plain", "plain"),
    ("{{.a}}-{{ .missing }}-", "b--"),
    ("{{ .a | ToUpper }}{{ .a | upper | lower }}", "Bb"),
    ('{{ Replace .path "/" "_" 1 }} {{ .path | replace "/" "_" }}', "_x/y?z=1 _x_y?z=1"),
    ('{{ Trim "--x--" "-" }}{{ TrimLeft "--x" "-" }}{{ TrimRight "x--" "-" }}', "xxx"),
    ('{{ trimAll "/" "/x/" }}{{ trimPrefix "/x" .path }}{{ TrimSuffix .path "1" }}', "x/y?z=1/x/y?z="),
    ("[{{ trim `  x ` }}{{ TrimSpace ` y ` }}]", "[xy]"),
    ("{{ trunc 3 __line__ }} {{ trunc -5 __line__ }}", "hel error"),
    ("{{ substr 1 4 __line__ }}", "ell"),
    ("{{ repeat 3 .a }}", "bbb"),
    ('{{ if contains "error" __line__ }}E{{ else }}ok{{ end }}', "E"),
    ('{{ if hasPrefix "he" __line__ }}1{{ end }}{{ if hasSuffix "x" __line__ }}2{{ end }}', "1"),
    ('{{ if eq .a "c" }}c{{ else if eq .a "b" }}b{{ else }}?{{ end }}', "b"),
    ('{{ if and .a (not .empty) }}y{{ end }}{{ if or .empty "" }}n{{ end }}', "y"),
    ("{{ if gt (int .n) 10 }}big{{ end }}{{ if le 2 1 }}x{{ end }}", "big"),
    ('{{ default "none" .empty }} {{ .a | default "none" }}', "none b"),
    ('{{ regexReplaceAll "(x)/(y)" .path "${2}/$1" }}', "/y/x?z=1"),
    ('{{ regexReplaceAllLiteral "x" .path "$1" }}', "/$1/y?z=1"),
    ('{{ count "[aeiou]" __line__ }}', "4"),
    ("{{ add .n 1 2 }} {{ sub .n 2 }} {{ mul 2 3 }} {{ div .n 5 }} {{ mod .n 5 }}", "15 10 6 2 2"),
    ("{{ addf .f 1 }} {{ subf 5 .f }} {{ mulf .f 2 }} {{ divf 1 4 }}", "3.5 2.5 5 0.25"),
    ("{{ max 1 .n 3 }} {{ min 4 2 }} {{ maxf .f 1.5 }} {{ ceil .f }} {{ floor .f }}", "12 2 2.5 3 2"),
    ("{{ round 1.2345 2 }} {{ float64 .f }} {{ int .f }}", "1.23 2.5 2"),
    ('{{ printf "%05d|%s|%q|%.1f|%v" (int .n) .a .a 2.55 .n }}', '00012|b|"b"|2.5|12'),
    ("{{ .path | urlencode }} {{ urldecode `a%20b` }}", "%2Fx%2Fy%3Fz%3D1 a b"),
    ("{{ b64enc .a }} {{ b64dec `aGk=` }}", "Yg== hi"),
    ("[{{ alignLeft 3 .a }}|{{ alignRight 3 .a }}|{{ alignLeft 2 `abc` }}]", "[b  |  b|ab]"),
    ("{{ indent 2 `x` }}", "  x"),
    ("{{ title `a word` }}", "A Word"),
    ("{{ bytes `2 KB` }} {{ duration `1m30s` }} {{ duration_seconds `250ms` }}", "2000 90 0.25"),
    ('{{ __timestamp__ | date "2006-01-02T15:04:05.000Z07:00" }}', "2026-09-21T14:13:20.123Z"),
    ('{{ date "Mon Jan _2 3:04PM 06" __timestamp__ }}', "Mon Sep 21 2:13PM 26"),
    ("{{ __timestamp__ | unixEpoch }} {{ unixEpochMillis __timestamp__ }}", "1790000000 1790000000123"),
    ('{{ .t | toDate "2006-01-02T15:04:05Z07:00" | unixEpoch }}', "1795083630"),
    ('{{ unixToTime "1790000000" | date "15:04" }}', "14:13"),
    ("a {{- .a -}} c", "abc"),
    ("{{/* nothing */}}x", "x"),
    ("{{ (printf `%s!` .a) | ToUpper }}", "B!"),
    ("{{ `}}` }}", "}}"),
    ("{{ len .path }}", "8"),
]  # fmt: skip


@pytest.mark.parametrize(("template", "wanted"), CASES, ids=[template for template, _ in CASES])
def test_templates_write(template: str, wanted: str) -> None:
    assert compile_template(template)(SCOPE) == wanted


@pytest.mark.parametrize(
    "template",
    [
        "{{ div 1 0 }}",
        "{{ b64dec `?` }}",
        "{{ bytes .a }}",
        "{{ repeat 10000000 .a }}",
        "{{ gt .n 10 }}",
        '{{ toDate "2006" .a }}',
    ],
)
def test_what_cannot_be_written_is_an_error_of_the_line(template: str) -> None:
    """The query goes on; the line gets __error__."""
    with pytest.raises(TemplateFailure):
        compile_template(template)(SCOPE)
