"""Live figures in outputs of a notebook: each one HTML with all that it needs."""

import re
import tomllib
from pathlib import Path

import pytest
from page import LIVE, ROOT, STATIC

import vitbook.live
from vitbook.book import live
from vitbook.book.live import live_html

PAGE = "https://example.org/page.html#live-softmax"
SOFTMAX = {
    "data": "softmax",
    "asks": "largest-weight",
    "sets": {"divided": {"d": "256", "divided": "1"}},
}
FIGURES = {
    "softmax": SOFTMAX,
    "bill": {"sets": {"one head": {"heads": "1"}}},
    "occlusion": {"data": "occlusion"},
    "alike": {},
    "rotary": {"data": "rotary"},
}
MARKS = {  # of each reader of notebooks: where, which, when it is dark, when it is light
    "JupyterLab": ("body", "data-jp-theme-light", "false", "true"),
    "VS Code": ("body", "class", "vscode-dark", "vscode-light"),
    "VS Code, high contrast": (
        "body",
        "class",
        "vscode-high-contrast",
        "vscode-high-contrast-light vscode-high-contrast",
    ),
    "Colab": ("html", "theme", "dark", "light"),
    "a page of Jupyter Book": ("html", "data-theme", "dark", "light"),
}
DARK, LIGHT = "rgb(19, 26, 34)", "rgb(255, 255, 255)"
PROBE = """vitbook.live.figure("probe", function (stage) {
  const board = vitbook.live.board({ rows: 1, columns: 1, label: "one", pick() {} });
  stage.box.append(board.node);
  board.draw([1], 1, 1);
});"""
INK = """canvas => {
  const { width, height } = canvas;
  return [...canvas.getContext("2d").getImageData(width / 2, height / 2, 1, 1).data];
}"""


def output(name, **more):
    return live_html(name, title=name, still=f"The still of {name}.", page=PAGE, **more)


@pytest.fixture
def opened(new_page, tmp_path):
    """opened(*outputs, **context): a page that holds them and nothing else."""

    def notebook(*outputs, **context):
        path = tmp_path / "outputs.html"
        path.write_text(f'<meta charset="utf-8"><body>{"<hr>".join(outputs)}</body>', "utf8")
        page = new_page(**context)
        page.goto(path.as_uri())
        return page

    return notebook


@pytest.mark.browser
def test_figures_in_outputs_work_and_know_nothing_of_each_other(opened):
    softmax, bill = (output(name, **FIGURES[name]) for name in ("softmax", "bill"))
    page = opened(softmax, bill, output("softmax", **SOFTMAX), bill)  # run again; shown twice
    for name in ("softmax", "bill"):
        for one in page.locator(f"#live-{name}").all():
            one.scroll_into_view_if_needed()
        page.locator(f"#live-{name}.live-running").nth(1).wait_for()
    assert page.evaluate("typeof vitbook") == "undefined"
    stills = page.get_by_text("The still of").all()  # in each output, and in its shadow root
    assert len(stills) == 8
    assert not any(one.is_visible() for one in stills)
    first, again = page.locator("#live-softmax").all()
    todo = again.locator(".softmax-todo").inner_text()
    page.get_by_role("button", name="divided", exact=True).first.click()
    first.get_by_text("At 256 numbers a typical score is ±1.0").wait_for()
    assert again.locator(".softmax-todo").inner_text() == todo
    ring = again.locator(".softmax-ring")
    ring.press("ArrowDown")
    assert ring.get_attribute("aria-valuetext") == "0.69"
    page.get_by_role("button", name="one head").first.click()
    merged = page.locator("#live-bill .bill-told", has_text="Cheapest: merged")
    assert merged.count() == 1


@pytest.mark.browser
@pytest.mark.parametrize("reader", MARKS)
def test_a_figure_and_its_canvas_follow_the_readers_theme(opened, tmp_path, monkeypatch, reader):
    node, mark, dark, light = MARKS[reader]
    (tmp_path / "probe.js").write_text(PROBE, "utf8")
    monkeypatch.setattr(vitbook.live, "__path__", [*vitbook.live.__path__, str(tmp_path)])
    page, seen = opened(output("probe")), []
    page.locator(".live-running canvas").wait_for()
    for value, paper in ((light, LIGHT), (dark, DARK), (light, LIGHT)):
        page.evaluate(f"document.querySelector('{node}').setAttribute('{mark}', '{value}')")
        page.wait_for_function(
            "paper => getComputedStyle(document.querySelector('[data-live-output]').shadowRoot"
            ".querySelector('.live')).backgroundColor === paper",
            arg=paper,
        )
        seen.append(page.locator("canvas").evaluate(INK))
    assert seen[0] == seen[2] == [27, 35, 48, 255]
    assert seen[1] == [242, 244, 248, 255]


@pytest.mark.browser
def test_where_no_script_runs_the_still_and_the_way_to_the_page_are_read(opened):
    page = opened(output("bill"), java_script_enabled=False)
    assert page.get_by_text("The still of bill.").is_visible()
    assert page.get_by_role("link").get_attribute("href") == PAGE


def test_an_output_is_light_holds_all_it_needs_and_sizes_in_pixels():
    for name, more in FIGURES.items():
        html = output(name, **more)
        assert len(html.encode()) < 100_000, name
        assert not re.search(r"\drem\b|\bhtml\[|new Function|\beval\(|<link|src=", html), name
        assert html.lower().count("</script") == 1


def test_the_wheel_has_what_these_figures_need_and_nothing_twice():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))
    included = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    files = {Path(one).name for one, to in included.items() if to.startswith("vitbook/live/")}
    assert all(included[f"website/live/{one}"] == f"vitbook/live/{one}" for one in files)
    needed = {"output.js", "output.css", "kit.js", "live.css", "pack.py"}
    for name, more in FIGURES.items():
        needed |= {f"{name}.js"} | {f"{one}.py" for one in [more.get("data")] if one}
        needed |= {one.name for one in LIVE.glob(f"{name}.css")}
    assert files == needed


def test_the_guess_has_the_colours_of_the_sites_themes():
    wanted = re.findall(r"--book-predict: (#\w+)", (STATIC / "book.css").read_text("utf8"))
    assert re.findall(r"--book-predict: (#\w+)", (LIVE / "output.css").read_text("utf8")) == wanted


def test_a_script_says_where_the_figure_is_and_a_wrong_name_which_file_is_missing(
    capsys, monkeypatch
):
    monkeypatch.setattr(live.sys, "modules", {})
    live.show_live("softmax", title="T", still="S", page=PAGE)
    assert capsys.readouterr().out == f"Live figure: {PAGE}\n"
    with pytest.raises(FileNotFoundError, match=r"the package has no vitbook/live/gone\.js"):
        output("gone")
