"""Single configurations of a space, by number or by values.

``Evaluator`` keeps a ``metes evaluate --lines`` running, with trace and space
loaded, and asks it. What a search needs that is not ours: optuna, or your own.

Invariant: a row is that of an exploration to the end, whenever it is asked for.
"""

import json
import subprocess

from ._command import MetesError, command


class NoHeap(MetesError):
    """Values that the space has, but that are no heap together."""


class Evaluator:
    """The configurations of ``space`` for ``trace``, one at a time.

    ``size`` is how many there are, of which the first ``baselines`` are heaps to
    compare with. ``axes`` are the parameters of the others: dictionaries of
    ``name``, ``values``, and ``index`` where a parameter matters with some values
    of ``general.index`` only. Use it in a ``with`` statement, or ``close()`` it.
    """

    def __init__(self, trace, space="paper", *, levels=None, metes=None):
        arguments = ["evaluate", str(trace), "--space", str(space), "--lines"]
        if levels:
            arguments += ["--levels", str(levels)]
        program = command(metes)
        try:
            self._process = subprocess.Popen(
                [program, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        except FileNotFoundError as error:
            raise MetesError.no_command(program) from error
        about = self._read()
        self.size = about["space"]
        self.baselines = about["baselines"]
        self.axes = about["axes"]

    def row(self, number=None, *, values=None):
        """The row of a configuration, by its number or by the values of its
        parameters by name; parameters that are left out have their first value.

        A dictionary of ``number``, ``values``, ``status``, ``heap``, ``toml``,
        ``footprint``, ``accesses``, ``energy_fj``, ``time_ps``, ``cycles``,
        ``cycles_max`` and more. Metrics count only where ``status`` is
        ``complete``. Raises ``MetesError`` for what the space does not have,
        ``NoHeap`` for values that are no heap together.
        """
        if (number is None) == (values is None):
            raise MetesError("give either a number or values")
        question = {"values": values} if number is None else {"number": number}
        try:
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError) as error:
            raise MetesError("the command has ended: make another Evaluator") from error
        answer = self._read()
        if "error" in answer:
            raise (NoHeap if answer["no_heap"] else MetesError)(answer["error"])
        return answer

    def _read(self):
        line = self._process.stdout.readline()
        if not line:
            _, said = self._process.communicate()
            raise MetesError(said.strip() or f"metes ended with {self._process.returncode}")
        return json.loads(line)

    def close(self):
        """Ends the command."""
        if self._process.poll() is None:
            self._process.communicate()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
