"""A style sheet loses the rules that no element can use, and nothing else."""

import pytest

from tools.purge import purged

KEPT = [
    "p{margin:0}",
    ".here .there{margin:0}",
    "#id.here>a:hover{margin:0}",
    ".here:not(.gone){margin:0}",
    ":is(.gone,.here){margin:0}",
    "[class*=gone]{margin:0}",
    r".sd-col\:3{margin:0}",
    "@font-face{font-family:X;src:url(x.woff2)}",
    "@keyframes gone{from{top:0}to{top:1px}}",
    '@import "x.css";',
    "@media print{.here{margin:0}}",
    ".here{background:url(\"data:image/svg+xml,<a style='b{}'>)\")}",
    ".here{background:url(data:x;y{z)}",
    '.here::after{content:"}.gone{"}',
]
GONE = [
    ".gone{margin:0}",
    ".here .gone{margin:0}",
    "p.gone::before{content:'}'}",
    "@media print{.gone{margin:0}}",
    "@supports (a:b){@media print{.gone{margin:0}}}",
    "/* a { note } */",
]
USED = {"here", "there", "sd-col:3"}


@pytest.mark.parametrize("css", KEPT)
def test_what_may_be_used_stays_as_it_is(css):
    assert purged(css, USED.__contains__) == css


@pytest.mark.parametrize("css", GONE)
def test_what_no_element_can_use_goes_and_what_stands_around_it_stays(css):
    assert purged(f"a{{top:0}}{css}b{{top:0}}", USED.__contains__) == "a{top:0}b{top:0}"


def test_a_rule_keeps_the_selectors_that_can_be_used():
    css = ".gone,.here,:is(p,.gone),a[href='x,y'].gone{top:0}"
    assert purged(css, USED.__contains__) == ".here,:is(p,.gone){top:0}"


def test_a_licence_stays():
    assert purged("/*! MIT */a{top:0}", USED.__contains__) == "/*! MIT */a{top:0}"
