"""Four rows in one call: the nearest number of steps, printed in percent."""

import json

import pytest

from vitbook.book.baselines import baselines
from vitbook.book.intervals import student_interval

HEAD = {"format": 1, "metrics": {"test_accuracy": ""}, "wall_seconds": 1.0, "date": "2026-01-01"}
HEAD |= dict.fromkeys(("what", "chosen_on"), "") | {"machines": []}
HEAD |= {key: {} for key in ("settings", "versions", "data", "weight_files")}


@pytest.fixture
def folder(tmp_path):
    def runs(rows):
        return [
            {"condition": condition, "seed": seed, "metrics": {"test_accuracy": value}}
            for condition, values in rows
            for seed, value in enumerate(values)
        ]

    base = [({"data": "dots", "model": "logistic regression"}, (0.70, 0.72))]
    base += [({"data": "dots", "model": "nearest neighbour"}, (0.75,))]
    small = [
        ({"data": "dots", "model": model, "steps": steps}, (value, value + 0.02))
        for model, value in (("MLP", 0.8), ("small CNN", 0.9))
        for steps, value in ((300, value), (1200, value + 0.05))
    ]
    small += [({"data": "half", "model": "MLP", "steps": 3}, (0.1, 0.2))]
    whole = [({"data": "dots", "model": "MLP", "steps": 9000}, (0.88, 0.9))]
    for name, rows in (("baselines", base), ("small_networks", small), ("whole_networks", whole)):
        file = {**HEAD, "name": name, "runs": runs(rows)}
        (tmp_path / f"{name}.json").write_text(json.dumps(file))
    return tmp_path


def test_four_rows_with_the_nearest_number_of_steps(folder):
    rows = baselines("dots", steps=700, folder=folder)
    assert rows["logistic regression"] == pytest.approx(student_interval([0.70, 0.72]))
    assert rows["nearest neighbour"] == (0.75, 0.75, 0.75)
    assert rows["MLP"] == pytest.approx(student_interval([0.8, 0.82]))
    assert rows.steps == {"MLP": 300, "small CNN": 300}
    longer = baselines("dots", steps=10_000, folder=folder)
    assert longer["small CNN"].mean == pytest.approx(0.96)
    assert longer["MLP"].mean == pytest.approx(0.89)
    assert longer.steps == {"MLP": 9000, "small CNN": 1200}


def test_printed_it_is_a_table_in_percent(folder):
    lines = str(baselines("dots", steps=1200, folder=folder)).splitlines()
    assert [line.split("  ")[0] for line in lines] == [
        "logistic regression",
        "nearest neighbour",
        "MLP, 1,200 steps",
        "small CNN, 1,200 steps",
    ]
    assert lines[1].endswith(" 75.0")
    assert " 86.0 ± " in lines[2]


def test_unknown_images_are_refused(folder):
    for name in ("half", "nothing"):
        with pytest.raises(ValueError, match=rf"data must be images .* got '{name}'"):
            baselines(name, steps=3, folder=folder)
