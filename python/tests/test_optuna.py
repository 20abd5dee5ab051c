"""optuna leads, the command replays: what optuna is told is what an exploration
of everything has."""

import functools
import json
import subprocess
import sys
from pathlib import Path

import metes
import metes.optuna
import optuna
import pytest
from conftest import COMMAND, HERE, SPACE
from optuna.trial import TrialState

#: Pools in two levels: some grid points are no heap, on some requests fail.
POOLS = str(HERE / "pools.toml")

optuna.logging.set_verbosity(optuna.logging.WARNING)


@pytest.fixture(scope="session")
def exhaustive(trace, tmp_path_factory):
    """The rows of an exploration to the end, by space and number."""

    @functools.cache
    def explore(space):
        place = tmp_path_factory.mktemp("exhaustive")
        command = [COMMAND, "explore", trace, "--space", space, "--search", "exhaustive"]
        command += ["--to-the-end", "-o", place]
        subprocess.run(command, check=True, capture_output=True)
        command = [COMMAND, "report", place, "--export", "csv", "-o", place / "rows.csv"]
        subprocess.run(command, check=True, capture_output=True)
        head, *lines = (place / "rows.csv").read_text().splitlines()
        rows = [dict(zip(head.split(","), line.split(","))) for line in lines]
        front = json.loads((place / "exploration.json").read_text())["front"]
        return {int(row["number"]): row for row in rows}, front

    return explore


SAMPLERS = {
    "nsga2": lambda: optuna.samplers.NSGAIISampler(population_size=20, seed=3),
    "tpe": lambda: optuna.samplers.TPESampler(seed=3),
    "random": lambda: optuna.samplers.RandomSampler(seed=3),
}


@pytest.mark.parametrize("space", [SPACE, POOLS])
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_every_value_told_is_that_of_the_exhaustive_result(trace, exhaustive, space, sampler):
    rows, _ = exhaustive(space)
    with metes.optuna.Search(trace, space, sampler=SAMPLERS[sampler]()) as search:
        search.run(120, trials=400)
        trials = search.study.trials
        told = [trial for trial in trials if trial.user_attrs["serves"]]
        for trial in told:
            row = rows[trial.user_attrs["number"]]
            assert row["status"] == "complete"
            assert trial.values == [float(row["footprint"]), float(row["accesses"])]
        assert len(told) > 60
        # Also what failed did, and optuna knows that it is bad.
        for row in search.rows:
            own = rows[row["number"]]
            assert row["status"] == own["status"]
            for key in ("footprint", "cycles", "failed"):
                assert str(row[key]) == own[key]
        assert all(trial.user_attrs["serves"] for trial in search.study.best_trials)
        if space == POOLS:
            assert {"complete", "failed"} == {row["status"] for row in search.rows}


def test_the_whole_space_gives_the_front_of_an_exploration(trace, exhaustive):
    rows, front = exhaustive(POOLS)
    with metes.optuna.Search(trace, POOLS) as search:
        for number in range(search.evaluator.baselines, search.evaluator.size):
            values = search.evaluator.row(number)["values"]
            asked = metes.optuna.Asked(search.study.ask(), values)
            search.tell(asked, search.evaluate(asked))
        # All but the heaps to compare with, of which none is on this front.
        assert len(search.rows) == len(rows) - 1
        # Nothing is left to try.
        trials = len(search.study.trials)
        found = search.run(10)
        assert len(search.study.trials) == trials
    assert not any(row["named"] for row in front)
    assert [row["number"] for row in found] == [row["number"] for row in front]
    assert {tuple(search.point(row)) for row in found} == {
        tuple(map(int, trial.values)) for trial in search.study.best_trials
    }


def test_the_same_seed_finds_the_same(trace):
    def numbers(seed):
        with metes.optuna.Search(trace, SPACE, seed=seed) as search:
            front = search.run(120)
            told = [trial.user_attrs.get("number") for trial in search.study.trials]
            return told, [row["number"] for row in front]

    assert numbers(1) == numbers(1)
    assert numbers(1) != numbers(2)


def test_duplicates_are_told_from_memory(trace):
    dead = {"coalescing.pools": 0}
    sampler = optuna.samplers.RandomSampler(seed=1)
    with metes.optuna.Search(trace, SPACE, sampler=sampler) as search:
        first = search.ask()
        one = search.evaluate(metes.optuna.Asked(first.trial, dead | {"coalescing.up_to": 512}))
        two = search.evaluate(metes.optuna.Asked(first.trial, dead | {"coalescing.up_to": "any"}))
        assert one is two and len(search.rows) == 1
        search.tell(first, one)
        # No more than asked for, however many trials that takes.
        search.run(200)
        assert len(search.rows) == 201
        assert len(search.study.trials) > 201


def test_values_that_are_no_heap_are_told_as_bad(trace):
    values = {"general.count": 2, "dedicated.count": 4, "dedicated.level": "near"}
    with metes.optuna.Search(trace, POOLS) as search:
        with pytest.raises(metes.NoHeap):
            search.evaluator.row(values=values)
        asked = [metes.optuna.Asked(search.ask().trial, values) for _ in range(3)]
        assert search.evaluate(asked[0]) is None
        search.tell(asked[0], None)
        assert search.rows == []
        # Once a heap serves, what is no heap is worse.
        served = metes.optuna.Asked(asked[1].trial, {})
        search.tell(served, search.evaluate(served))
        search.tell(asked[2], search.evaluate(asked[2]))
        first, second, third = search.study.trials
        assert first.state == TrialState.FAIL
        assert third.values == [2 * value for value in second.values]
        assert [trial.user_attrs["serves"] for trial in search.study.trials] == [False, True, False]


def test_three_objectives_and_a_study_of_ones_own(trace):
    study = optuna.create_study(
        directions=["minimize"] * 3, sampler=optuna.samplers.NSGAIIISampler(seed=1)
    )
    objectives = ("footprint", "accesses", "worst")
    with metes.optuna.Search(trace, SPACE, objectives=objectives, study=study) as search:
        front = search.run(60)
    assert search.study is study
    best = {tuple(trial.values) for trial in study.best_trials}
    points = [tuple(map(float, search.point(row))) for row in front]
    assert set(points) == best
    # One for each outcome, none beaten.
    assert len(set(points)) == len(points)


def test_numbers_and_values_both_ways(trace):
    with metes.Evaluator(trace, SPACE) as evaluator:
        for number in range(0, evaluator.size, 97):
            row = evaluator.row(number)
            assert row["number"] == number
            if row["values"] is None:
                assert number < evaluator.baselines and row["named"]
            else:
                assert evaluator.row(values=row["values"]) == row
        names = [axis["name"] for axis in evaluator.axes]
        assert "list.depth" in names and len(set(names)) == len(names)
        # A question without an answer is said, and the next one answered.
        with pytest.raises(metes.MetesError, match=f"numbers go from 0 to {evaluator.size - 1}"):
            evaluator.row(evaluator.size)
        with pytest.raises(metes.MetesError, match="did you mean `list.fit`"):
            evaluator.row(values={"list.fti": "best"})
        assert evaluator.row(0)["named"]


def test_errors_name_cause_and_remedy(trace, tmp_path):
    with pytest.raises(metes.MetesError, match="give levels"):
        metes.optuna.Search(trace, SPACE, objectives=("footprint", "energy"))
    with pytest.raises(metes.MetesError, match="there are footprint"):
        metes.optuna.Search(trace, SPACE, objectives=("size",))
    with pytest.raises(metes.MetesError, match="must minimise 2 values"):
        metes.optuna.Search(trace, SPACE, study=optuna.create_study())
    with pytest.raises(metes.MetesError, match="check the path"):
        metes.Evaluator(trace, tmp_path / "none.toml")
    with pytest.raises(metes.MetesError, match="there is no command"):
        metes.Evaluator(trace, SPACE, metes="no-such-command")


def test_without_optuna_the_package_works_and_says_what_is_missing(tmp_path):
    program = """
import sys
sys.modules["optuna"] = None
import metes
try:
    import metes.optuna
except ImportError as error:
    print(error)
"""
    place = str(Path(metes.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": place},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "pip install optuna" in done.stdout


def test_the_example_of_the_docs(trace, tmp_path, monkeypatch, capsys):
    page = (HERE.parent.parent / "docs" / "exploration.md").read_text()
    example = page.split("```python\n", 1)[1].split("```", 1)[0]
    assert "metes.optuna" in example
    monkeypatch.chdir(tmp_path)
    Path("run.trace.parquet").symlink_to(trace)
    Path("my.toml").symlink_to(SPACE)
    exec(compile(example, "docs/exploration.md", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert lines and all(line.split()[0].isdigit() for line in lines)
