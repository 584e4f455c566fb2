"""What is measured of a built page: the share of code, visible proofs, and empty stretches."""

import pytest

from tools import rhythm

PAGE = """<style>* {{ margin: 0; padding: 0; border: 0 }} div {{ overflow: hidden }}</style>
<article class="bd-article"><h1 style="height: 100px">One</h1>
<figure style="height: 200px"></figure>
<div class="highlight" style="height: 300px"><pre>a = 1
assert a
glue(c1_a=a)</pre></div>
<details><summary style="height: 0; overflow: hidden"></summary>
<div class="highlight" style="height: 500px">assert 2</div></details>
<h2 style="height: 1500px">Two</h2>
<div class="predict" style="height: 100px"></div>
<p style="height: 800px"></p></article>"""


def test_height_code_proofs_and_stretches_are_measured_in_a_browser(tmp_path, browser):
    (tmp_path / "one.html").write_text(PAGE.format())
    page = browser.new_page(viewport={"width": rhythm.WIDTH, "height": rhythm.SCREEN})
    page.goto((tmp_path / "one.html").as_uri())
    found = page.evaluate(rhythm.MEASURE)
    page.close()
    assert (found["height"], found["code"], found["plumbing"]) == (
        pytest.approx(3000, abs=30),
        300,
        2,
    )
    (first, _), (second, _), (third, _) = rhythm.stretches(found)
    assert (first, second, third) == pytest.approx((2.0, 800 / 900, 100 / 900), abs=0.04)
    assert rhythm.stretches(found)[0][1] == "One"
    assert rhythm.row("one", found).startswith("| one | 3.3 | 10% | 2 | 2.0 One; 0.9 Two")
