"""Explore heaps for a trace on any ``concurrent.futures`` executor.

``metes.Evaluator`` replays single configurations; ``metes.optuna`` has optuna
choose them.

Processes, Dask (``Client.get_executor()``) and MPI (``mpi4py.futures``) all give
executors. The space is cut into shards; each is done by the ``metes`` command on
whichever worker takes it, and its units come back as bytes.

Invariant: a unit's bytes are a function of trace, space, options and the unit's
number, so the results are those of a single ``metes explore``, byte for byte,
whatever the executor and however many workers were lost on the way.
"""

import json
import os
import subprocess
import tempfile
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path

from ._command import MetesError, command
from .evaluator import Evaluator, NoHeap

__all__ = ["Evaluator", "MetesError", "NoHeap", "__version__", "explore"]

#: The version of the package, which is that of the command.
__version__ = "0.1.0"

#: Tries for a shard whose worker was lost.
TRIES = 3
#: Files of ``units/`` that are of the whole exploration, not of a unit.
SHARED = ("manifest.json", "origin.json", "seed")


def _run(arguments: list[str]) -> dict:
    """Runs ``metes --json``; its document."""
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise MetesError.no_command(arguments[0]) from error
    if done.returncode not in (0, 1):
        raise MetesError(done.stderr.strip() or f"{arguments[0]} ended with {done.returncode}")
    return json.loads(done.stdout)


def _read(directory: Path) -> dict[str, bytes]:
    """The files of ``units/``; those still being written have a dot in their name."""
    units = directory / "units"
    files = {path.name: path.read_bytes() for path in units.iterdir() if path.is_file()}
    return {name: data for name, data in files.items() if name in SHARED or name.isdigit()}


def _write(directory: Path, files: dict[str, bytes]) -> None:
    """Each file whole or not at all."""
    units = directory / "units"
    units.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        part = units / f"{name}.part-{os.getpid()}"
        part.write_bytes(data)
        part.replace(units / name)


def _shard(metes: str, arguments: list[str], number: int, count: int, shared: dict) -> dict:
    """Does one shard in a directory of its own; its units. Runs on a worker."""
    with tempfile.TemporaryDirectory(prefix="metes-") as place:
        directory = Path(place)
        _write(directory, shared)
        _run([metes, "--json", *arguments, "--shard", f"{number}/{count}", "-o", place])
        return {name: data for name, data in _read(directory).items() if name.isdigit()}


def explore(
    trace,
    space="paper",
    executor=None,
    output="metes-out",
    *,
    objectives=None,
    levels=None,
    shards=None,
    fresh=False,
    executor_factory=None,
    metes=None,
):
    """Explores every configuration of ``space`` for ``trace``.

    ``executor`` is any ``concurrent.futures`` executor; without one, processes
    of this machine do the work. Workers need to see the trace, and a space file,
    under the same path. ``shards`` is how many pieces the space is cut into, at
    most one a unit of 1024 configurations. Units that ``output`` has from an
    interrupted exploration are not done again. When a worker is lost, its shard
    is given out again, up to three times; where that broke the executor, as it
    breaks a ``ProcessPoolExecutor``, ``executor_factory`` makes another one.

    Returns the document that ``metes merge --json`` prints. ``results.parquet``,
    ``exploration.json`` and ``pareto/`` are in ``output``.
    """
    metes = command(metes)
    directory = Path(output)
    trace = str(Path(trace).resolve())
    if Path(space).suffix:
        space = str(Path(space).resolve())
    arguments = ["explore", trace, "--space", str(space), "--workers", "1"]
    if objectives:
        arguments += ["--objectives", ",".join(objectives)]
    if levels:
        arguments += ["--levels", str(levels)]
    # The first unit is done here, and with it the seed phase that all share.
    units = 1 << 62
    first = _run(
        [metes, "--json", *arguments, "--shard", f"1/{units}", "-o", str(directory)]
        + (["--fresh"] if fresh else [])
    )
    units = -(-first["space"] // 1024)
    own_executor = executor is None
    if own_executor:
        executor_factory = executor_factory or ProcessPoolExecutor
        executor = executor_factory()
    count = min(units, shards or units)
    try:
        executor = _all(executor, executor_factory, metes, arguments, directory, units, count)
    finally:
        if own_executor:
            executor.shutdown(cancel_futures=True)
    return _run([metes, "--json", "merge", str(directory), "-o", str(directory)])


def _all(executor, factory, metes, arguments, directory, units, count):
    """Gives all shards out and keeps what comes back; the executor in use."""
    shared = {name: data for name, data in _read(directory).items() if name in SHARED}

    def missing(number):
        return any(
            not (directory / "units" / f"{unit:06}").exists()
            for unit in range(number - 1, units, count)
        )

    tries = {number: 0 for number in range(1, count + 1) if missing(number)}
    running: dict[Future, int] = {}

    def give_out(number, error=None):
        nonlocal executor
        tries[number] += 1
        if tries[number] > TRIES:
            raise MetesError(f"shard {number}/{count} was lost {TRIES} times") from error
        task = (_shard, metes, arguments, number, count, shared)
        try:
            future = executor.submit(*task)
        except Exception as broken:
            if factory is None:
                raise MetesError(
                    "the executor lost a worker and takes no more work; the units that are done "
                    f"are kept in {directory}: call explore() again, or give executor_factory"
                ) from broken
            executor.shutdown(wait=False, cancel_futures=True)
            executor = factory()
            future = executor.submit(*task)
        running[future] = number

    for number in list(tries):
        give_out(number)
    while running:
        done, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in done:
            number = running.pop(future)
            try:
                _write(directory, future.result())
            except MetesError:
                raise
            except Exception as error:  # whatever an executor says of a lost worker
                give_out(number, error)
    return executor
