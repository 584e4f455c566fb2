"""What the bench measures of a page: planted work and planted jumps are seen."""

import pytest

from tools.bench import visit

PAGE = "<!DOCTYPE html><html lang='en'><title>A</title><link rel='icon' href='data:,'><body>{}"
WORK = """<script>setTimeout(() => {
    const end = performance.now() + 200;
    while (performance.now() < end);
}, 300)</script>"""
JUMP = """<div id="top"></div><p style="height: 500px; background: teal">Text.</p>
<script>setTimeout(() => { document.getElementById('top').style.height = '300px'; }, 500)
</script>"""


@pytest.mark.browser
@pytest.mark.parametrize(
    ("body", "works", "jumps"),
    [("<p>Text.</p>", False, False), (WORK, True, False), (JUMP, False, True)],
    ids=["calm", "late work", "jump"],
)
def test_a_late_long_task_and_what_moves_without_being_asked_are_seen(
    browser, tmp_path, body, works, jumps
):
    (tmp_path / "page.html").write_text(PAGE.format(body))
    for _ in range(1 if works else 3):  # load only adds work
        task, shift = visit(browser, (tmp_path / "page.html").as_uri())
        assert shift > 0.1 if jumps else shift == 0
        if task <= 0.5:
            break
    assert (task > 0.5) == works
