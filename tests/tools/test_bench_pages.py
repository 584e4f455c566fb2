"""What the bench measures of a page: planted work, jumps and weight are seen."""

import pytest

from tools.bench_pages import Measured, measure, pages, table

PAGE = "<!DOCTYPE html><html lang='en'><title>A</title><link rel='icon' href='data:,'><body>{}"
WORK = """<script>setTimeout(() => {
    const end = performance.now() + 200;
    while (performance.now() < end);
}, 300)</script>"""
JUMP = """<div id="top"></div><p style="height: 500px; background: teal">Text.</p>
<script>setTimeout(() => { document.getElementById('top').style.height = '300px'; }, 500)
</script>"""
PICTURE = "<div style='height: 20000px'></div><img src='big.svg' alt='Big' loading='lazy'>"
OTHER = "<img src='big.svg' alt='Big' loading='lazy' style='display: none'>"  # of the dark theme
DRAWN = "<img alt='A dot' src='data:image/svg+xml,<svg xmlns=%22http://www.w3.org/2000/svg%22/>'>"


@pytest.fixture(scope="module")
def found(browser, tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    bodies = {"calm": DRAWN, "busy": WORK, "jumpy": JUMP, "long": PICTURE, "light": OTHER}
    for name, body in bodies.items():
        (folder / f"{name}.html").write_text(PAGE.format(body))
    big = f"<svg xmlns='http://www.w3.org/2000/svg'><!-- {'x' * 50_000} --></svg>"
    (folder / "big.svg").write_text(big)
    return measure(browser, folder, [f"{name}.html" for name in bodies], times=1)


@pytest.mark.browser
def test_work_after_the_page_has_come_is_a_late_long_task(found):
    assert found["busy.html"].last_long_task > 0.5


@pytest.mark.browser
def test_what_moves_without_being_asked_is_a_shift(found):
    assert found["jumpy.html"].layout_shift > 0.1
    assert found["calm.html"].layout_shift == 0


@pytest.mark.browser
def test_a_picture_further_down_counts_as_weight_but_not_on_arrival(found):
    page = found["long.html"]
    assert page.on_arrival < 2_000 < 50_000 < page.whole
    assert page.requests == 2


@pytest.mark.browser
def test_a_picture_of_the_other_theme_has_no_weight(found):
    assert found["light.html"].whole < 2_000


@pytest.mark.browser
def test_a_picture_that_stands_in_the_page_is_no_request(found):
    assert found["calm.html"].requests == 1


def test_the_slowest_page_stands_first_and_budgets_last():
    rows = table(
        {"a.html": Measured(1, 0.01, 1e5, 2e5, 3), "b.html": Measured(2, 0, 1e5, 2e5, 3)}
    ).splitlines()
    assert rows[2] == "| b.html | 2.0 s | 0.000 | 100 kB | 200 kB | 3 |"
    assert rows[3].startswith("| a.html")
    assert rows[4].startswith("| budget | 3.0 s | 0.02 |")


def test_pages_are_chosen_by_the_beginning_of_their_name(tmp_path):
    for name in ("vit/hybrids.html", "index.html", "_static/macros.html"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert pages(tmp_path, []) == ["index.html", "vit/hybrids.html"]
    assert pages(tmp_path, ["vit/hy"]) == ["vit/hybrids.html"]
