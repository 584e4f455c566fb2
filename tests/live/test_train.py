"""The model that trains in the page: it learns, is cut and compared while it runs."""

import json
import re
from itertools import cycle

import pytest
import torch
from page import LIVE, running, write_asking
from safetensors import safe_open
from safetensors.torch import load_file
from sklearn.datasets import load_digits

from vitbook.models.vit import VisionTransformer
from website.live import train
from website.live.pack import script

pytestmark = pytest.mark.browser
STEPS = """async ([values, updates]) => {
    const figure = live.train;
    await figure.ready;
    await figure.set(values);
    await figure.learn(updates);
    return figure.told();
}"""
TOLD = "() => live.train.told()"

# Weights as a file; logits of six held-out images, the inputs and the embedding of the first patch.
TAKEN = """async ([values, updates]) => {
    const figure = live.train;
    await figure.ready;
    await figure.set(values);
    await figure.learn(updates);
    const [{logits, inputs, task}] = await figure.told(), all = await figure.ask("tensors");
    const first = inputs.slice(0, task.shape.inputs);
    const [weight, bias] = ["weight", "bias"].map((part) =>
        all.find((one) => one.name === `patch_embed.proj.${part}`).values);
    const token = [...bias].map((b, o) => first.reduce(
        (sum, x, i) => sum + x * weight[i * bias.length + o], b));
    const file = [...new Uint8Array(await (await figure.ask("file")).arrayBuffer())];
    return {file, logits, first, token, images: task.images};
}"""


@pytest.fixture
def opened(new_page, tmp_path):
    (tmp_path / "data.js").write_text(script("train", train.data()), "utf8")
    address = write_asking(tmp_path, "train", "", "data.js", train.SCRIPTS)

    def ready(**options):
        page = running(new_page, address, "train", **{"reduced_motion": "reduce", **options})
        page.get_by_role("button", name="Play").and_(page.locator(":enabled")).wait_for()
        return page

    return ready


def test_digits_are_learned_and_the_figure_shows_them(opened):
    page = opened()
    (told,) = page.evaluate(STEPS, [{"rate": 0.004}, 200])
    begun, ended = told["rows"][0], told["rows"][-1]
    assert begun["at"] == 0
    assert begun["held"] < 0.3
    assert ended["at"] == 200
    assert ended["held"] > 0.85
    assert ended["loss"] < 0.6 < told["rows"][1]["loss"]
    assert page.locator(".train-score b").inner_text() == f"{100 * ended['held']:.0f} %"
    assert page.locator(".train-count").inner_text() == "200 updates"
    assert page.locator(".train-maps canvas").count() == 8


def test_a_part_is_cut_in_mid_run_with_a_mark_and_put_back(opened):
    page = opened()
    page.evaluate(STEPS, [{}, 20])
    page.locator(".train-part", has_text="attention").first.click()
    page.evaluate(TOLD)
    assert page.locator(".train-mark").count() == 2  # in both charts
    assert page.locator(".train-maps canvas").count() == 0
    assert page.locator(".train-cut", has_text="attention").count() == 2
    page.evaluate("live.train.learn(5)")
    (told,) = page.evaluate(TOLD)
    assert told["rows"][-1]["at"] == 25  # the run goes on
    page.locator(".train-part", has_text="attention").first.click()
    page.evaluate(TOLD)
    assert page.locator(".train-maps canvas").count() == 8
    page.get_by_label("Blocks").select_option("1")  # that begins anew
    (told,) = page.evaluate(TOLD)
    assert told["rows"][-1]["at"] == 0


def test_a_seed_is_a_run(opened):
    page = opened()
    runs = [page.evaluate(STEPS, [{"seed": seed}, 30]) for seed in (3, 3, 4)]
    assert runs[0] == runs[1] != runs[2]


def test_it_plays_pauses_and_steps(opened):
    page = opened()
    page.get_by_label("Speed").select_option("full")
    page.get_by_role("button", name="Play").click()
    page.wait_for_function("live.train.told().then(([one]) => one.steps > 3)")
    page.get_by_role("button", name="Pause").click()
    steps = page.evaluate(TOLD)[0]["steps"]
    page.get_by_role("button", name="One step").click()
    assert page.evaluate(TOLD)[0]["steps"] == steps + 1
    page.get_by_role("button", name="Start again").click()
    assert page.evaluate(TOLD)[0]["steps"] == 0


def test_the_digits_of_the_page_are_those_of_scikit_learn(opened):
    found = opened().evaluate("""async () => {
        const [{inputs, task: {labels, images}}] = await live.train.told();
        return {labels, images, first: inputs.slice(0, 64)};
    }""")
    digits = load_digits()
    assert found["labels"] == digits.target[found["images"]].tolist()
    patches = digits.images[found["images"][0]].reshape(4, 2, 4, 2).transpose(0, 2, 1, 3)
    assert found["first"] == (patches.flatten() / 8 - 1).tolist()


def test_the_state_is_the_address(opened):
    page = opened()
    assert "#" not in page.url  # nobody has changed anything
    page.get_by_label("Task").select_option("recall")
    page.get_by_role("button", name="Compare with even mean").click()
    page.get_by_label("Layer norm").select_option("after")  # of B
    page.get_by_label("Seed").fill("7")
    page.get_by_label("Seed").press("Enter")
    page.evaluate(TOLD)
    assert page.url.endswith("#train:task=recall&seed=7&B.mixing=mean&B.norm=after")
    runs = page.evaluate("live.train.learn(10).then(live.train.told)")
    page.reload()
    page.locator(".train-B .train-part").first.wait_for()
    assert page.evaluate("live.train.learn(10).then(live.train.told)") == runs
    assert page.get_by_label("Seed").input_value() == "7"


def test_an_exact_copy_is_in_the_address_and_learns_the_same(opened):
    page = opened()
    page.get_by_role("button", name="Compare with even mean").click()
    page.get_by_label("Mixing").select_option("attention")  # of B
    page.get_by_text("B is as A.").wait_for()
    assert page.url.endswith("#train:&B.mixing=attention")
    page.reload()
    page.locator(".train-B .train-part").first.wait_for()
    first, second = page.evaluate("live.train.learn(10).then(live.train.told)")
    assert {**second, "name": "A"} == first


def test_the_board_stays_under_the_pen_when_the_answer_appears(opened):
    page = opened()
    page.get_by_text("Draw your own digit").click()
    pad = page.locator(".train-own .draw-pad")
    pad.scroll_into_view_if_needed()
    before = pad.bounding_box()
    page.mouse.move(before["x"] + 60, before["y"] + 20)
    page.mouse.down()
    page.wait_for_function(
        "document.querySelector('.train-beside').checkVisibility({visibilityProperty: true})"
    )
    assert pad.bounding_box() == before


def test_what_an_address_says_that_means_nothing_is_named(opened):
    page = opened()
    page.evaluate("location.hash = '#train:depth=4&depth=99&B.task=pairs&wings=2'")
    page.reload()
    said = page.locator(".train-note[role=status]:not([hidden])")
    said.wait_for()
    words = "The link also says depth=99, B.task=pairs, wings=2, which means nothing here."
    assert said.inner_text() == words
    assert page.locator(".train-block").count() == 4


def test_the_curves_are_a_table_too(opened):
    page = opened()
    page.evaluate(STEPS, [{}, 10])
    page.get_by_text("The curves as a table").click()
    rows = page.locator(".live-table tbody tr").all_inner_texts()
    assert [row.split("\t")[0] for row in rows] == ["A, 0", "A, 5", "A, 10"]
    page.locator(".train-part", has_text="MLP").first.click()  # measured again, without an update
    page.evaluate(TOLD)
    last = page.locator(".live-table tbody tr").last.inner_text()
    assert last.split("\t")[::3] == ["A, 10", "no update since"]


def test_who_works_with_keys_stays_where_they_were(opened):
    page = opened()
    page.evaluate(STEPS, [{}, 5])
    focus = "document.activeElement.dataset.place"
    page.get_by_label("Layer norm").focus()
    page.keyboard.press("ArrowDown")
    page.evaluate(TOLD)
    assert page.evaluate(focus) == "norm"
    page.locator(".train-part", has_text="MLP").nth(1).focus()
    page.keyboard.press("Enter")
    page.evaluate(TOLD)
    assert page.evaluate(focus) == "A 1 mlp"


def test_the_patch_that_asks_is_framed_and_the_one_it_names(opened):
    page = opened()
    page.evaluate(STEPS, [{"task": "recall"}, 1])
    page.get_by_role("radio", name="row 2, column 2").press("ArrowRight")
    asked, named = page.locator(".train-picture rect").all()
    assert [asked.get_attribute(axis) for axis in "xy"] == ["2", "1"]
    target = page.evaluate(TOLD)[0]["task"]["targets"][6]
    assert [named.get_attribute(axis) for axis in "xy"] == [str(target % 4), str(target // 4)]
    assert page.locator(".train-map rect.train-named").count() == 8


def test_the_maps_of_all_patches_are_rows_and_that_of_one_is_a_picture(opened):
    page = opened()
    page.evaluate(STEPS, [{}, 5])
    sizes = """[...document.querySelectorAll(".train-map canvas")].map(
        ({width, height}) => [width, height])"""
    frames = page.locator(".train-model .train-asks")
    assert page.evaluate(sizes) == [[4, 4]] * 8
    assert frames.count() == 9
    page.get_by_role("button", name="All patches").click()
    assert page.evaluate(sizes) == [[16, 16]] * 8
    assert frames.count() == 0
    page.get_by_role("button", name="One patch").click()
    assert page.evaluate(sizes) == [[4, 4]] * 8
    assert frames.count() == 9


def test_the_model_that_is_taken_out_answers_in_the_package_as_in_the_page(opened, tmp_path):
    page = opened()
    found = page.evaluate(TAKEN, [{"seed": 2}, 30])
    path = tmp_path / "taken.safetensors"
    path.write_bytes(bytes(found["file"]))
    with safe_open(path, "pt") as taken:
        said = taken.metadata()
    assert {said["task"], said["seed"], said["updates"]} == {"digits", "2", "30"}
    model = VisionTransformer(
        image_size=8,
        patch_size=2,
        in_channels=1,
        num_classes=10,
        embed_dim=32,
        depth=int(said["depth"]),
        num_heads=int(said["heads"]),
        mlp_ratio=2,
        pool="mean",
    )
    model.load_state_dict(load_file(path))
    images = torch.from_numpy(load_digits().images[found["images"]]).float() / 8 - 1
    logits = model(images[:, None]).flatten().tolist()
    assert logits == pytest.approx(found["logits"], abs=1e-4)
    page.get_by_label("Layer norm").select_option("after")  # not the package's model by default
    page.evaluate(TOLD)
    assert page.get_by_role("button", name="Take it out").count() == 0


def test_a_model_of_colours_has_its_weights_in_the_order_of_pytorch(opened, tmp_path):
    found = opened().evaluate(TAKEN, [{"task": "recall", "depth": 1}, 3])
    path = tmp_path / "taken.safetensors"
    path.write_bytes(bytes(found["file"]))
    weights = load_file(path)
    patch = torch.tensor(found["first"]).view(4, 4, 3).permute(2, 0, 1)  # (C, P, P)
    token = (weights["patch_embed.proj.weight"] * patch).sum((1, 2, 3))
    token += weights["patch_embed.proj.bias"]
    assert token.tolist() == pytest.approx(found["token"], abs=1e-5)


def test_without_a_worker_or_webassembly_it_learns_the_same_to_the_bit_and_says_it_is_slow(opened):
    alone, slow = "delete globalThis.Worker;", "delete globalThis.WebAssembly"
    pages = [opened(script=script) for script in ("", alone, alone + slow)]
    assert [len(one.workers) for one in pages] == [1, 0, 0]
    told, *others = (one.evaluate(STEPS, [{"seed": 5}, 10]) for one in pages)
    assert told[0]["steps"] == 10
    assert others == [told, told]
    seen = [one.get_by_text("This browser runs the plain path").is_visible() for one in pages]
    assert seen == [False, False, True]
    assert pages[0].get_by_text(f"about {train.slower()} times as long").count() == 1


def test_a_page_in_the_background_pauses_and_goes_on(opened):
    page = opened(reduced_motion="no-preference")
    page.get_by_label("Speed").select_option("full")
    page.get_by_role("button", name="Play").click()
    steps = "live.train.told().then(([one]) => one.steps)"
    page.wait_for_function(f"{steps}.then((count) => count > 3)")
    page.evaluate("""() => {
        globalThis.away = true;
        Object.defineProperty(document, "hidden", {get: () => away, configurable: true});
    }""")
    page.evaluate("new Promise(requestAnimationFrame)")
    left = page.evaluate(steps)  # after what was asked before
    page.wait_for_timeout(500)
    assert page.evaluate(steps) == left
    page.evaluate("away = false")
    page.wait_for_function(f"{steps}.then((count) => count > {left})")


@pytest.mark.parametrize("script", ["", "delete globalThis.Worker"])
def test_a_question_that_fails_takes_no_later_answer(opened, script):
    page = opened(script=script)
    asked = page.evaluate("live.train.ask('nothing').then(() => 'an answer', () => 'an error')")
    assert asked == "an error"
    assert page.evaluate(STEPS, [{"seed": 5}, 3])[0]["steps"] == 3


CHANGES = """many => new Promise((done) => {
    const watched = new MutationObserver(() => --many || done());
    watched.observe(document.querySelector(".train-count b"),
        {childList: true, characterData: true, subtree: true});
    setTimeout(done, 2000);  // of a fast machine, which ends first
})"""


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_answers_while_two_models_train_on_a_machine_four_times_as_slow(width, opened):
    page = opened(viewport={"width": width, "height": 844}, reduced_motion="no-preference")
    page.get_by_label("Speed").select_option("full")
    page.get_by_role("button", name="attention, for recall").click()
    page.get_by_role("button", name="half of the answers").click()  # and it plays
    page.wait_for_function("document.querySelector('.train-count b').textContent > 0")
    browser = page.context.browser
    browser.start_tracing(page=page, categories=["toplevel", "devtools.timeline"])
    page.evaluate(CHANGES, 20)
    events = json.loads(browser.stop_tracing())["traceEvents"]
    (main,) = {
        (one["pid"], one["tid"])
        for one in events
        if one["name"] == "HandlePostMessage" and "tdur" in one  # in the page, and in the worker
        if any(
            other["name"] == "Layout" and (other["pid"], other["tid"]) == (one["pid"], one["tid"])
            for other in events
        )
    }
    tasks = [one for one in events if (one["pid"], one["tid"]) == main and "tdur" in one]
    drawn = [one for one in tasks if one["name"] == "HandlePostMessage"]
    assert len(drawn) > 2
    # microseconds of the processor, whatever else the machine does
    assert 4 * max(one["tdur"] for one in tasks) < 50_000
    laid = [one["ts"] for one in tasks if one["name"] == "Layout"]
    asked = [at for at in laid if any(one["ts"] < at < one["ts"] + one["dur"] for one in drawn)]
    assert asked == []  # a drawing is laid out once, after it


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_screen(opened, width):
    page = opened(viewport={"width": width, "height": 844})
    page.evaluate(STEPS, [{"depth": 6}, 1])
    assert page.evaluate("document.documentElement.scrollWidth") <= width


HELD = """() => ['.train-asks-first', '.train-say', '.train-stream'].map(
    (one) => document.querySelector(one).offsetHeight)"""
OUTSIDE = """() => [...document.querySelectorAll(".train rect, .train-answer")].filter((one) => {
    const {left, right, bottom} = one.getBoundingClientRect();
    const frame = (one.closest("svg") ?? one.closest(".train")).getBoundingClientRect();
    return left < frame.left - 2 || right > frame.right + 2 || bottom > frame.bottom + 2;
}).length"""
BLACK = """() => [...document.querySelectorAll(".train-map canvas")].filter((one) =>
    [...one.getContext("2d").getImageData(0, 0, 1, 1).data].join() === "0,0,0,255").length"""
EXCEPTION = "This run is an exception."
TURN = (".train-asks-first", ".train-chart", ".train-first-bar")
STRANGE = re.compile("undefined|NaN|Infinity|null")


THIRD = train.EXPERIMENTS[2::3]  # of two widths, and the shortest third
IN_TURN = [
    pytest.param(one, width, marks=() if one in THIRD else pytest.mark.deep)
    for one, width in zip(train.EXPERIMENTS, cycle([390, 1280]))
]


@pytest.mark.parametrize(("one", "width"), IN_TURN)
def test_an_experiment_is_whole_and_nothing_moves_when_it_ends(one, width, opened):
    page = opened(viewport={"width": width, "height": 844})
    page.get_by_role("button", name=one.name, exact=True).first.click()
    page.get_by_text(f"of {one.until} updates").wait_for()
    assert one.choices[0] in page.locator(".train-choices").inner_text()
    held = page.evaluate(HELD)
    page.evaluate(f"live.train.learn({one.until})")
    said = page.locator(".train-verdict").inner_text()
    assert f"recorded runs; in all {len(train.SEEDS)}: " in said
    assert EXCEPTION not in said  # with the seed 0
    assert page.evaluate(HELD) == held
    *above, bar = (page.locator(one).first.bounding_box() for one in TURN)
    end = max(one["y"] + one["height"] for one in above)
    assert width < 1280 or bar["y"] - end < 35  # Play stands below the question, or the curve
    assert not STRANGE.search(page.locator(".train").inner_html())
    assert [page.evaluate(OUTSIDE), page.evaluate(BLACK)] == [0, 0]


def test_every_setting_is_drawn_in_words_and_numbers(opened):
    page = opened()
    found = page.evaluate("""async () => {
        await live.train.ready;
        const texts = {}, start = vitbook.trainSettings.START;
        for (const [key, , list] of vitbook.trainSettings.CHOICES)
            for (const value of Object.keys(list)) {
                await live.train.set({...start, [key]: value});
                await live.train.learn(6);
                texts[`${key} ${value}`] = document.querySelector(".train").innerHTML;
            }
        return texts;
    }""")
    assert [name for name, text in found.items() if STRANGE.search(text)] == []


@pytest.mark.parametrize(("depth", "over"), [(6, 1), (2, 0)])
def test_numbers_that_ran_over_are_said_and_a_new_run_is_sound(depth, over, opened):
    page = opened()
    page.evaluate(STEPS, [{"depth": depth, "norm": "none", "rate": 0.4, "warmup": 0}, 20])
    said = page.locator(".train-over").get_by_text("The numbers ran over")
    assert said.count() == over
    page.get_by_role("button", name="One step").click()
    page.locator("[aria-live]", has_text="21 updates").wait_for()
    assert page.locator("[aria-live]", has_text="ran over").count() == over
    page.get_by_text("The curves as a table").click()
    assert not STRANGE.search(page.locator(".train").inner_html())
    assert [page.evaluate(OUTSIDE), page.evaluate(BLACK)] == [0, 0]
    page.evaluate(STEPS, [{"rate": 0.004}, 1])
    assert said.count() == 0


def test_the_choice_of_an_answer_brings_the_question_the_curve_and_the_drawing_into_view(opened):
    page = opened(viewport={"width": 1280, "height": 800})
    page.get_by_label("Speed").select_option("slow")
    page.get_by_role("button", name="ten times the rate").click()
    page.get_by_role("button", name="half of it").click()
    assert page.get_by_label("Speed").input_value() == "even"  # the run of another is no measure
    page.wait_for_function("scrollY > 100")
    tops = [
        page.locator(one).bounding_box()["y"]
        for one in (".train-asks-first", ".train-model.train-B")
    ]
    assert 0 <= tops[0] < 60
    assert tops[1] < 750


def test_what_differs_from_the_first_model_is_said_and_taken_back(opened):
    page = opened()
    page.get_by_role("button", name="attention, for recall").click()
    page.get_by_label("Task").select_option("digits")
    said = page.locator(".train-differs")
    words = "A differs from the first model: Blocks: 1. B differs from A: Mixing: even mean."
    said.get_by_text(words).wait_for()
    page.evaluate("live.train.learn(2)")
    page.get_by_role("button", name="Back to the first model").click()
    said.get_by_text("A is the first model.", exact=True).wait_for()
    page.get_by_text("Your runs").click()
    rows = page.locator(".train-charts tbody tr").all_inner_texts()
    assert rows[-1].split("\t")[2:] == ["2", "Mixing: even mean, Blocks: 1, B, seed 0"]
    page.evaluate("navigator.clipboard.writeText = text => { globalThis.copied = text; }")
    page.get_by_role("button", name="Copy table").click()
    page.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("copied").split("\n") == ["Run\theld out\tupdates\tmodel", *rows]


def test_an_experiment_asks_runs_to_its_end_and_says_what_happened(opened):
    page = opened(reduced_motion="no-preference")
    page.get_by_label("Speed").select_option("full")
    page.get_by_role("button", name="attention, in mid-run").click()
    assert page.get_by_text("What happened").count() == 0
    page.get_by_role("button", name="nothing falls").click()  # a prediction, and it plays
    page.get_by_text("You said: nothing falls. It was: they fall and come back.").wait_for()
    assert page.get_by_role("button", name="Play").count() == 1  # it has stopped by itself
    (told,) = page.evaluate(TOLD)
    assert told["steps"] == 500
    assert page.locator(".train-mark").count() == 2
    assert page.url.endswith("#train:experiment=cut-digits&seed=0")
    page.reload()
    page.get_by_role("button", name="they fall and come back").wait_for()


def test_a_run_that_is_unlike_the_recorded_ones_says_so(opened):
    page = opened()
    seeds = zip(train.SEEDS, train.read_record()["rate"], strict=True)
    (rate,) = (one for one in train.EXPERIMENTS if one.id == "rate")
    unlike = next(seed for seed, percent in seeds if not rate.held(percent))
    page.get_by_role("button", name="a hundred times the rate").click()
    page.get_by_label("Seed").fill(str(unlike))
    page.get_by_label("Seed").press("Enter")
    page.evaluate("live.train.learn(240)")
    page.get_by_text("What happened").wait_for()
    assert page.get_by_text(EXCEPTION).count() == 1


def test_who_changes_something_leaves_the_experiment(opened):
    page = opened()
    page.get_by_role("button", name="large patches").click()
    page.get_by_label("Layer norm").select_option("after")
    assert page.locator(".train-name[aria-pressed=true]").count() == 0
    assert page.get_by_text("Predict, then run").is_hidden()


def test_what_an_experiment_cuts_is_left_alone_by_who_has_left_it(opened):
    page = opened()
    page.get_by_role("button", name="attention, in mid-run").click()
    page.evaluate("live.train.learn(10)")
    page.locator(".train-part", has_text="MLP").first.click()
    page.evaluate("live.train.learn(490)")
    (told,) = page.evaluate(TOLD)
    assert told["steps"] == 500
    assert page.locator(".train-cut", has_text="attention").count() == 0
    assert page.get_by_text("What happened").count() == 0


REPLAYED = {"digits-attention": 20, "large-patches": 27, "rate": 39}


@pytest.mark.parametrize(("name", "seed"), REPLAYED.items())
def test_a_recorded_run_is_found_again_to_the_last_digit(name, seed, opened):
    found = opened().evaluate("given => live.train.trial(...given)", [name, seed])
    assert found == train.read_record()[name][train.SEEDS.index(seed)]


def test_what_is_said_of_an_experiment_held_in_nearly_every_recorded_run():
    for one in train.data()["experiments"]:
        assert one["runs"] == len(train.SEEDS)
        assert one["held"] >= 17, one["id"]  # and the page says in how many
        assert len(one["ranges"]) == len(one["reads"])


def test_a_record_of_another_engine_is_refused(monkeypatch):
    monkeypatch.setattr(train, "digest", lambda one: "another")
    with pytest.raises(ValueError, match="no runs of 'moment' by this engine"):
        train.data()


def test_a_slowness_of_another_engine_is_refused(monkeypatch):
    monkeypatch.setattr(train, "engine", lambda: "another")
    with pytest.raises(ValueError, match="how slow this engine's plain path is"):
        train.slower()


def test_every_link_of_the_book_to_an_experiment_leads_to_one():
    texts = [path.read_text("utf8") for path in (LIVE.parents[1] / "book").rglob("*.md")]
    linked = {name for text in texts for name in re.findall(r"<train experiment=([^>]+)>", text)}
    assert len(linked) > 4
    assert linked <= {one.id for one in train.EXPERIMENTS}


def test_one_experiment_runs_in_a_chapter_and_another_seed_after_it(new_page, tmp_path):
    (tmp_path / "data.js").write_text(script("train", train.data()), "utf8")
    address = write_asking(tmp_path, "train-one", "", "data.js", train.SMALL)
    source = 'data-source="train-one"'  # it reads the other figure's data
    page_of = tmp_path / "train-oneFalse.html"
    page_of.write_text(page_of.read_text("utf8").replace(source, 'data-source="train"'), "utf8")
    page = running(new_page, address, "train-one")
    page.get_by_role("button", name="something between").click()
    page.get_by_text("So it was.").wait_for()
    assert page.locator("#live-train-one").get_attribute("data-steps") == "500"
    page.get_by_role("button", name="Again, another seed").click()
    page.get_by_role("button", name="Pause").click()
    page.evaluate("live['train-one'].set({experiment: 'large-patches'})")
    page.get_by_text("Four patches of 4 × 4").wait_for()
