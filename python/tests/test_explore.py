"""One exploration on several executors: the same bytes, whoever does the work."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import metes
import pytest
from conftest import COMMAND, HERE, SPACE


def results(directory):
    """Names and bytes of what an exploration leaves."""
    directory = Path(directory)
    files = [directory / "results.parquet", directory / "exploration.json"]
    files += sorted((directory / "pareto").iterdir())
    return {path.name: path.read_bytes() for path in files}


@pytest.fixture(scope="session")
def single(trace, tmp_path_factory):
    """The results of a single process."""
    place = tmp_path_factory.mktemp("single")
    command = [COMMAND, "explore", trace, "--space", SPACE, "--search", "exhaustive", "-o", place]
    subprocess.run(command, check=True, capture_output=True)
    return results(place)


def test_processes_give_the_bytes_of_one(trace, single, tmp_path):
    found = metes.explore(trace, SPACE, output=tmp_path)
    # The grid without dead parameters, and the heaps to compare with.
    assert found["configurations"] == found["space"] > 3000
    assert results(tmp_path) == single


def test_an_executor_of_ones_own_and_fewer_shards(trace, single, tmp_path):
    with ProcessPoolExecutor(2) as executor:
        metes.explore(trace, SPACE, executor, tmp_path, shards=2)
        # It is the caller's, and still open.
        assert executor.submit(abs, -1).result() == 1
    assert results(tmp_path) == single


class Killing(ProcessPoolExecutor):
    """Processes, one of which is killed while the first shard is being done."""

    kills = 0

    def submit(self, work, *arguments):
        if Killing.kills == 0:
            Killing.kills += 1
            return super().submit(_die)
        return super().submit(work, *arguments)


def _die():
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_worker_costs_its_shard_and_nothing_else(trace, single, tmp_path):
    Killing.kills = 0
    metes.explore(trace, SPACE, output=tmp_path, executor_factory=Killing)
    assert Killing.kills == 1
    assert results(tmp_path) == single


def test_a_broken_executor_keeps_what_is_done(trace, single, tmp_path):
    Killing.kills = 0
    with Killing(1) as executor, pytest.raises(metes.MetesError, match="call explore\\(\\) again"):
        metes.explore(trace, SPACE, executor, tmp_path)
    units = tmp_path / "units"
    before = {path.name: path.stat().st_mtime_ns for path in units.glob("0*")}
    assert "000000" in before
    metes.explore(trace, SPACE, output=tmp_path)
    assert results(tmp_path) == single
    after = {name: (units / name).stat().st_mtime_ns for name in before}
    assert after == before, "finished units are not done again"


def test_dask_gives_the_same(trace, single, tmp_path):
    import distributed

    with distributed.Client(
        n_workers=2, threads_per_worker=1, dashboard_address=None, processes=True
    ) as client:
        metes.explore(trace, SPACE, client.get_executor(), tmp_path)
    assert results(tmp_path) == single


MPI = """
import sys
from mpi4py.futures import MPIPoolExecutor
import metes
if __name__ == "__main__":
    with MPIPoolExecutor() as executor:
        metes.explore(sys.argv[1], sys.argv[2], executor, sys.argv[3])
"""


def test_mpi_gives_the_same(trace, single, tmp_path):
    script = tmp_path / "explore.py"
    script.write_text(MPI)
    environment = os.environ | {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PYTHONPATH": str(HERE.parent),
    }
    command = ["mpirun", "--oversubscribe", "-n", "3", sys.executable, "-m", "mpi4py.futures"]
    done = subprocess.run(
        [*command, script, trace, SPACE, tmp_path / "out"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert results(tmp_path / "out") == single


def test_errors_are_those_of_the_command(trace, tmp_path):
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("[general]\ncuont = [1]\n")
    with pytest.raises(metes.MetesError, match="did you mean `count`"):
        metes.explore(trace, wrong, output=tmp_path / "out")
    with pytest.raises(metes.MetesError, match="there is no command"):
        metes.explore(trace, SPACE, output=tmp_path / "out", metes="no-such-command")
