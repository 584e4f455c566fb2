"""Old addresses of pages, sections and notebooks lead to the new ones."""

import json
from pathlib import Path

import nbformat
import pytest
from answerable import HTML, ROOT

from website.build.site import Site
from website.pages.moved import old_notebooks, old_pages, renamed
from website.pages.settings import read_settings

# Each page that was called otherwise, and the labels that stood on it then
OLD = json.loads(Path(__file__).with_name("old_addresses.json").read_text("utf8"))

pytestmark = pytest.mark.site


def test_each_old_address_leads_to_a_page_and_to_an_anchor_of_it():
    site, ways, lost = Site(HTML, ROOT), old_pages(ROOT), []
    assert set(OLD) <= set(ways)
    for page, labels in OLD.items():
        assert f"{page}.html" in site.pages, page
        now = site.pages[f"{ways[page][-1].to}.html"]
        here = [renamed(label, ways[page]) for label in labels.split()]
        lost += [f"{now.name}#{anchor}" for anchor in here if anchor not in now.anchors]
    assert lost == []


def test_each_old_notebook_names_the_one_of_today():
    settings = read_settings(ROOT)
    assert old_notebooks(ROOT)
    for old, page in old_notebooks(ROOT).items():
        (cell,) = nbformat.read(HTML / "notebooks" / f"{old}.ipynb", as_version=4).cells
        name = f"{page.rpartition('/')[2]}.ipynb"
        assert (HTML / "notebooks" / name).is_file()
        assert f"({settings.colab_url}{name})" in cell.source


@pytest.mark.browser
@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_an_old_link_arrives(open_page, address, scripts):
    old = f"{address}/attention/05_qk_merge.html?a=b#sec-c5-cost"
    page = open_page(old, java_script_enabled=scripts)
    rest = "?a=b#sec-qk-merge-cost" if scripts else ""
    page.wait_for_url(f"{address}/attention/qk_merge.html{rest}*")
    assert page.locator("#sec-qk-merge-cost").count() == 1
