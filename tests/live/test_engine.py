"""The engine that trains in the page computes what PyTorch does, with and without its kernel."""

import json
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import combinations, product
from queue import Queue
from shutil import copy, which
from subprocess import DEVNULL, Popen
from threading import Thread

import pytest
import torch
import torch.nn.functional as F
from page import LIVE
from sklearn.datasets import load_digits
from torch import Tensor, nn

from vitbook.layers.attention import MultiHeadSelfAttention
from vitbook.layers.token_mixing import TokenMixing
from vitbook.models.vit import VisionTransformer
from vitbook.training.schedule import parameter_groups
from website.live import train

pytestmark = pytest.mark.browser
SIZES = {"grid": 3, "inputs": 3, "classes": 4, "dim": 8, "hidden": 12, "tokenHidden": 5, "heads": 2}
SIZES |= {"depth": 2, "batch": 3, "decay": 0.1}
PARTS = {
    "positions": ["none", "learned", "sincos"],
    "residual": [True, False],
    "norm": ["before", "after", "none"],
    "mlp": [True, False],
    "read": ["mean", "class", "each"],
}
MIXINGS = ["attention", "unscaled", "mlp", "conv", "mean", "none"]
UPDATES, RATE = 5, 1e-3
# One model on the fast way and on the plain one: weights, gradients and losses, logits at the end;
# and whether the two ways differ in a bit.
RUN = """async ([settings, updates, rate]) => {
    const { load, model, dice } = vitbook.engine, random = dice(1, "data");
    const { grid, inputs, classes, batch, read } = settings, patches = grid ** 2;
    const X = Float32Array.from({length: batch * patches * inputs}, random.normal);
    const labels = Array.from({length: read === "each" ? batch * patches : batch}, () =>
        random.whole(classes));
    const ways = [];
    for (const kernel of [vitbook.kernel, ""]) {
        const { memory, ops, fast } = await load(8, kernel);
        const net = model(settings, memory, ops);
        const before = net.tensors();
        net.gradients(X, labels);
        const gradients = net.tensors("g").map((one) => one.values);
        const again = model(settings, memory, ops);  // its gradients are zero
        const losses = Array.from({length: updates}, () => again.update(X, labels, rate));
        const logits = again.forward(X, batch).slice();
        ways.push({fast, before, gradients, losses, logits, after: again.tensors()});
    }
    const bits = ways.map((way) => JSON.stringify({...way, fast: 0}));
    const plainly = (list) => list.map((one) => ({...one, values: [...one.values]}));
    const [{before, gradients, losses, logits}] = ways;
    return {X: [...X], labels, before: plainly(before), gradients: gradients.map((g) => [...g]),
        losses, logits: [...logits], ways: ways.map((way) => way.fast), same: bits[0] === bits[1]};
}"""

# Weights of short runs, as text: on the fast way, and the last one on the plain way.
RUNS = """async ([{images, labels}, words]) => {
    const arrays = {images: Uint8Array.from(images), labels};
    const { read, settings, recipe } = vitbook.trainSettings;
    const ways = [...words.map((one) => [one, vitbook.kernel]), [words.at(-1), ""]], found = [];
    for (const [text, kernel] of ways) {
        const { A } = read(text), task = vitbook.training.TASKS[A.task](arrays);
        const loaded = await vitbook.engine.load(400, kernel);
        const run = vitbook.training.run(task, settings(A), loaded, recipe(A));
        const losses = Array.from({length: 20}, run.step);
        found.push({losses, weights: run.net.tensors().map((one) => [...one.values])});
    }
    return JSON.stringify(found);
}"""
SETTINGS = ("", "task=recall&mixing=conv&positions=sincos&norm=after", "mixing=mlp&rate=0.4")

# In a worker: short runs at the page's highest rate, with every part, told one by one as they end.
# `ways`: the kernels; `only`: a part that all have. What is told are losses, logits and weights of
# each way as text, or how many of the losses are numbers.
HIGHEST = """async ({images, labels, updates, ways, only}) => {
    const arrays = {images: Uint8Array.from(images), labels};
    const { CHOICES, START, settings, recipe } = vitbook.trainSettings;
    const rate = Math.max(...Object.keys(CHOICES.find(([key]) => key === "rate")[2]));
    let all = [{depth: 6}, {task: "recall", depth: 1}].map((one) => ({...START, ...one, rate}));
    for (const [key, , list, live] of CHOICES)
        if (live && key !== "rate")
            all = all.flatMap((one) => Object.keys(list).map((value) => ({...one, [key]: value})));
    const has = ([key, value]) => (one) => String(one[key]) === value;
    all = all.filter((one) => one.mixing === "attention" || one.scaled === "1");
    for (const part of Object.entries(only)) all = all.filter(has(part));
    postMessage(all.length);
    const kernels = await Promise.all(ways.map((kernel) => vitbook.engine.load(400, kernel)));
    for (const one of all)
        postMessage(kernels.map((loaded) => {
            const task = vitbook.training.TASKS[one.task](arrays);
            const run = vitbook.training.run(task, settings(one), loaded,
                {...recipe(one), batch: 4});
            const losses = Array.from({length: updates}, run.step);
            const first = task.held.inputs.slice(0, 4 * task.shape.grid ** 2 * task.shape.inputs);
            const said = [losses, run.net.forward(first, 4),
                ...run.net.tensors().map((tensor) => tensor.values)];
            return {said: ways.length > 1 ? said.join(" ") : "",
                numbers: losses.filter(Number.isFinite).length};
        }));
}"""
IN_A_WORKER = """([scripts, run, given, seconds]) => new Promise((done) => {
    const text = `globalThis.vitbook = {};${scripts}
        const failed = (error) => postMessage(String(error)), run = ${run};
        addEventListener("message", ({data}) => run(data).catch(failed), {once: true});`;
    const worker = new Worker(URL.createObjectURL(new Blob([text]))), told = [];
    const end = () => (worker.terminate(), done(told));
    let limit = setTimeout(end, 1000 * seconds);
    worker.onmessage = ({data}) => {
        told.push(data);
        clearTimeout(limit);
        limit = setTimeout(end, 1000 * seconds);
        if (told.length > told[0]) end();
    };
    worker.postMessage(given);
})"""


class Unscaled(MultiHeadSelfAttention):
    """Attention whose scores are not divided by sqrt(d)."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        out = F.scaled_dot_product_attention(*self.project(x), scale=1.0)
        return self.proj(out.transpose(1, 2).flatten(2))


class Mean(nn.Module):
    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return x.mean(1, keepdim=True).expand_as(x)


class Depthwise(nn.Module):
    """A convolution of the patches, each channel on its own; a class token gets zeros."""

    def __init__(self, dim: int, grid: int):
        super().__init__()
        self.grid, layer = (grid, grid), nn.Conv2d(dim, dim, 3, padding=1, groups=dim)
        self.weight, self.bias = layer.weight, layer.bias

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        extra = x.shape[1] - self.grid[0] * self.grid[1]
        patches = x[:, extra:].transpose(1, 2).unflatten(2, self.grid)
        y = F.conv2d(patches, self.weight, self.bias, padding=1, groups=x.shape[2])
        return torch.cat([torch.zeros_like(x[:, :extra]), y.flatten(2).transpose(1, 2)], dim=1)


class Reference(nn.Module):
    """vitbook's ViT with the parts that are asked for."""

    def __init__(self, mixing: str, parts: dict):
        super().__init__()
        self.parts, self.mixes, s = parts, mixing != "none", SIZES
        tokens = s["grid"] ** 2 + (parts["read"] == "class")
        makers = {
            "attention": MultiHeadSelfAttention,
            "unscaled": Unscaled,
            "mlp": lambda **_: TokenMixing(num_tokens=tokens, token_dim=s["tokenHidden"]),
            "conv": lambda embed_dim, **_: Depthwise(embed_dim, s["grid"]),
        }
        self.vit = VisionTransformer(
            image_size=s["grid"],
            patch_size=1,
            in_channels=s["inputs"],
            num_classes=s["classes"],
            embed_dim=s["dim"],
            depth=s["depth"],
            num_heads=s["heads"],
            mlp_ratio=s["hidden"] / s["dim"],
            pool="cls" if parts["read"] == "class" else "mean",
            positions={"sincos": "sincos_2d"}.get(parts["positions"], parts["positions"]),
            final_norm="tokens" if parts["norm"] == "before" else "none",
            attn_layer=makers.get(mixing, lambda **_: Mean()),
        )

    def forward(self, images: Tensor) -> Tensor:
        x, parts = self.vit.embed(images), self.parts
        for block in self.vit.encoder.blocks:
            for norm, part, there in (
                (block.norm1, block.attn, self.mixes),
                (block.norm2, block.mlp, parts["mlp"]),
            ):
                if not there:
                    continue
                y = part(norm(x) if parts["norm"] == "before" else x)
                y = x + y if parts["residual"] else y
                x = norm(y) if parts["norm"] == "after" else y
        x = self.vit.encoder.norm(x)
        return self.vit.head(x) if parts["read"] == "each" else self.vit.forward_head(x)


def as_torch(one: dict, values: list[float]) -> Tensor:
    """A tensor of the engine, which keeps matrices (in, out), in PyTorch's shape."""
    shape = one["shape"]
    found = torch.tensor(values)
    if len(shape) > 1:
        found = found.view(-1, shape[0]).T.reshape(shape)
    return found


@pytest.fixture(scope="module")
def page(browser, tmp_path_factory):
    path = tmp_path_factory.mktemp("engine") / "page.html"
    names = ("train-engine.js", "train-kernel.js")
    scripts = "".join(f'<script src="{(LIVE / name).as_uri()}"></script>' for name in names)
    path.write_text(f"<!doctype html><title>Engine</title>{scripts}", "utf8")
    page = browser.new_page()
    page.goto(path.as_uri())
    yield page
    page.close()


COMBINATIONS = [dict(zip(PARTS, chosen, strict=True)) for chosen in product(*PARTS.values())]
FIFTH = COMBINATIONS[::5]  # every two parts meet in it


def test_a_fifth_of_the_combinations_has_every_pair():
    pairs, all_pairs = (
        {pair for parts in some for pair in combinations(parts.items(), 2)}
        for some in (FIFTH, COMBINATIONS)
    )
    assert pairs == all_pairs


@pytest.mark.parametrize(
    "some", [FIFTH, pytest.param(COMBINATIONS, marks=pytest.mark.deep)], ids=["a fifth", "all"]
)
@pytest.mark.parametrize("mixing", MIXINGS)
def test_gradients_and_updates_are_those_of_pytorch_for_every_combination(page, mixing, some):
    named = {"mixing": "attention" if mixing == "unscaled" else mixing}
    for seed, parts in enumerate(some):
        if mixing == "none" and not parts["mlp"]:
            continue  # nothing is left
        settings = SIZES | parts | named | {"scaled": mixing != "unscaled", "seed": seed}
        run = page.evaluate(RUN, [settings, UPDATES, RATE])
        assert run["ways"] == [True, False]
        assert run["same"], parts
        compare(run, Reference(mixing, parts), parts)


def compare(run: dict, model: Reference, parts: dict) -> None:
    known = dict(model.vit.named_parameters())
    with torch.no_grad():
        for one in run["before"]:
            weight = known[one["name"]]
            weight.copy_(as_torch(one, one["values"]).reshape(weight.shape))
    used = {one["name"]: known[one["name"]] for one in run["before"]}
    for name, weight in known.items():
        weight.requires_grad_(name in used)
    side = SIZES["grid"]
    images = torch.tensor(run["X"]).view(-1, side, side, SIZES["inputs"]).permute(0, 3, 1, 2)
    labels = torch.tensor(run["labels"])

    def loss() -> Tensor:
        return F.cross_entropy(model(images).flatten(0, -2), labels)

    wanted = torch.autograd.grad(loss(), list(used.values()))
    for one, values, gradient in zip(run["before"], run["gradients"], wanted, strict=True):
        largest = gradient.abs().max()
        off = (as_torch(one, values).reshape(gradient.shape) - gradient).abs().max()
        # a key's bias has no gradient: what is left is rounding, on both sides
        assert off <= 1e-4 * max(largest, 1e-3), (one["name"], parts)
    optimizer = torch.optim.AdamW(parameter_groups(model, SIZES["decay"]), lr=RATE)
    for told in run["losses"]:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        torch.testing.assert_close(value.item(), told, atol=1e-4, rtol=1e-4)
    # where a true gradient is zero, Adam makes full steps of its rounding: weights differ there,
    # and what the model says does not
    found = torch.tensor(run["logits"]).view(-1, SIZES["classes"])
    torch.testing.assert_close(model(images).flatten(0, -2).detach(), found, atol=1e-3, rtol=1e-3)


def test_a_part_is_changed_in_mid_run_and_the_rest_is_kept(page):
    found = page.evaluate("""async () => {
        const { load, model, dice } = vitbook.engine;
        const { memory, ops } = await load(8, vitbook.kernel);
        const net = model({grid: 2, dim: 8, depth: 1, heads: 2, batch: 2}, memory, ops);
        const random = dice(2), X = Float32Array.from({length: 32}, random.normal);
        net.update(X, [1, 2], 1e-2);
        const weights = () => new Map(net.tensors().map((one) => [one.name, one.values.join()]));
        const before = weights(), maps = net.maps.length;
        net.set({mixing: "mean", residual: false});
        const cut = weights(), none = net.maps.length;
        net.update(X, [1, 2], 1e-2);
        net.set({mixing: "attention", residual: true});
        const back = weights(), qkv = "encoder.blocks.0.attn.qkv.weight";
        return {maps, none, gone: cut.has(qkv), kept: before.get(qkv) === back.get(qkv),
            same: cut.get("head.weight") === before.get("head.weight"),
            learned: back.get("head.weight") !== before.get("head.weight")};
    }""")
    assert found == {
        "maps": 1, "none": 0, "gone": False, "kept": True, "same": True, "learned": True
    }  # fmt: skip


def test_a_model_in_a_used_memory_learns_as_in_a_new_one(page):
    losses = page.evaluate("""async () => {
        const { load, model, dice } = vitbook.engine, settings = {grid: 2, dim: 8, batch: 2};
        const { memory, ops } = await load(8, vitbook.kernel);
        return [0, 1].map(() => {
            const net = model(settings, memory, ops), random = dice(2);
            const X = Float32Array.from({length: 32}, random.normal);
            return [0, 1, 2].map(() => net.update(X, [1, 2], 1e-2));
        });
    }""")
    assert losses[0] == losses[1]
    assert losses[0][2] < losses[0][0]


def test_its_own_functions_are_those_of_mathematics(page):
    found = page.evaluate("""() => {
        const { exp, log, sin, cos } = vitbook.engine, off = (a, b) => Math.abs(a / b - 1);
        const all = Array.from({length: 400}, (_, i) => (i - 200) / 7.3);
        return [Math.max(...all.map((x) => off(exp(x), Math.exp(x)))),
            Math.max(...all.map((x) => Math.abs(log(Math.exp(x)) - x))),
            Math.max(...all.map((x) => Math.abs(sin(x) - Math.sin(x)))),
            Math.max(...all.map((x) => Math.abs(cos(x) - Math.cos(x))))];
    }""")
    assert max(found) < 1e-12


def test_its_own_functions_end_for_numbers_that_ran_over(page):
    scripts = (LIVE / "train-engine.js").read_text("utf8")
    told = """async () => {
        const { exp, log } = vitbook.engine, all = [1e20, -1e20, 1e300, Infinity, -Infinity, NaN];
        postMessage(2);
        postMessage(all.every((x) => Object.is(exp(x), Math.exp(x))));
        postMessage([0, -1, Infinity, -Infinity, NaN].every((x) => Object.is(log(x), Math.log(x))));
    }"""
    assert page.evaluate(IN_A_WORKER, [scripts, told, None, 10]) == [2, True, True]


def at_the_highest_rate(page, **given) -> list[list[dict]]:
    scripts = "".join((LIVE / f"{name}.js").read_text("utf8") for name in train.COMPUTES)
    digits = load_digits()
    given |= {"images": digits.data.ravel().tolist(), "labels": digits.target.tolist()}
    count, *told = page.evaluate(IN_A_WORKER, [scripts, HIGHEST, given, 20])
    assert len(told) == count, told[-1:]
    return told


@pytest.mark.deep
def test_every_combination_of_parts_comes_to_its_end_at_the_highest_rate(page):
    kernel = page.evaluate("vitbook.kernel")
    told = at_the_highest_rate(page, updates=30, ways=[kernel], only={})
    numbers = [one["numbers"] for (one,) in told]
    assert len(numbers) == 2 * 3 * 6 * 2 * 3 * 2
    assert max(numbers) == 30
    assert min(numbers) < 20  # some do run over


def test_numbers_that_run_over_do_so_alike_with_and_without_the_kernel(page):
    kernel = page.evaluate("vitbook.kernel")
    only = {"norm": "none", "mlp": "1", "residual": "1", "positions": "learned"}
    told = at_the_highest_rate(page, updates=20, ways=[kernel, ""], only=only)
    assert [fast["said"] == plain["said"] for fast, plain in told] == [True] * 12
    assert any("NaN" in fast["said"] for fast, _ in told)


def test_dice_are_those_of_their_seed_and_name_and_fall_evenly(page):
    found = page.evaluate("""() => {
        const { dice } = vitbook.engine, draw = (...by) => dice(...by).normal();
        const random = dice(3, "a"), all = Array.from({length: 20000}, random.normal);
        const mean = all.reduce((a, b) => a + b) / all.length;
        const spread = all.reduce((a, b) => a + (b - mean) ** 2, 0) / all.length;
        const order = random.order(50);
        return {mean, spread, again: draw(1, "x") === draw(1, "x"),
            others: new Set([draw(1, "x"), draw(2, "x"), draw(1, "y"), draw(1)]).size,
            sorted: order.toSorted((a, b) => a - b).every((one, i) => one === i),
            moved: order.some((one, i) => one !== i)};
    }""")
    assert abs(found.pop("mean")) < 0.03
    assert abs(found.pop("spread") - 1) < 0.05
    assert found == {"again": True, "others": 4, "sorted": True, "moved": True}


def test_a_seed_is_the_same_run_in_firefox_to_the_bit(browser, tmp_path):
    program = next(filter(None, map(which, ("firefox-esr", "firefox"))), None)
    if program is None:
        pytest.skip("Firefox is not installed (Debian: firefox-esr), and no build needs it")
    posted = Queue()

    class Folder(SimpleHTTPRequestHandler):
        def do_POST(self):
            posted.put(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    for name in train.COMPUTES:
        copy(LIVE / f"{name}.js", tmp_path)
    digits = load_digits()
    arrays = {"images": digits.data.ravel().tolist(), "labels": digits.target.tolist()}
    scripts = "".join(f'<script src="{name}.js"></script>' for name in train.COMPUTES)
    (tmp_path / "page.html").write_text(
        f"<!doctype html><title>Engine</title><script>vitbook = {{}}</script>{scripts}<script>"
        f"({RUNS})({json.dumps([arrays, SETTINGS])}).catch(String)"
        '.then((body) => fetch("found", {method: "POST", body}));</script>',
        "utf8",
    )
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Folder, directory=tmp_path)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/page.html"
        page = browser.new_page()
        page.goto(address)
        chromium = posted.get(timeout=60)
        page.close()
        profile = tmp_path / "profile"
        profile.mkdir()
        command = [program, "--headless", "--no-remote", "--profile", profile, address]
        with Popen(command, stdout=DEVNULL, stderr=DEVNULL) as firefox:
            try:
                found = posted.get(timeout=120)
            finally:
                firefox.terminate()
        server.shutdown()
    assert len(json.loads(found)) == len(SETTINGS) + 1
    assert found == chromium


def test_the_kernel_is_its_source_assembled():
    assert train.kernel() == (LIVE / "train-kernel.js").read_text("utf8")
