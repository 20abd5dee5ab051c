"""Search a space of heaps by any sampler of optuna (``pip install optuna``).

A ``Search`` is a dialogue: optuna says which values to try, the ``metes``
command replays the heap that they name, optuna is told the metrics.

Invariant: what optuna is told of a heap that serves the trace is the row of an
exploration to the end.
A configuration is replayed once: values that differ only in parameters which
cannot matter name the same one, and are told from memory. Trial by trial, the
same sampler and seed find the same.
"""

from dataclasses import dataclass

try:
    import optuna
except ModuleNotFoundError as error:
    if error.name != "optuna":
        raise
    raise ModuleNotFoundError(
        "metes.optuna needs optuna, which is not installed: pip install optuna, or metes[optuna]",
        name="optuna",
    ) from error

from ._command import MetesError
from .evaluator import Evaluator, NoHeap

__all__ = ["Asked", "Search"]

#: Metrics of a row, by the name of the objective.
OBJECTIVES = {
    "footprint": "footprint",
    "accesses": "accesses",
    "energy": "energy_fj",
    "time": "time_ps",
    "cycles": "cycles",
    "worst": "cycles_max",
}
#: Trials for each evaluation, where ``run`` is not told.
TRIALS = 4


@dataclass(frozen=True)
class Asked:
    """A trial of optuna's and the values that it chose, by parameter."""

    trial: optuna.Trial
    values: dict


class Search:
    """A search of ``space`` for ``trace`` that optuna leads.

    ``objectives`` are minimised, any of footprint, accesses, energy, time (these
    two with ``levels``), cycles, worst. ``sampler`` is any that can do several
    objectives, with a seed of its own for a search that can be repeated; without
    one NSGA-II with ``seed``. ``study`` goes on with a study that exists.

    ``run`` searches. Who wants to be between asks and tells::

        asked = search.ask()
        row = search.evaluate(asked)
        search.tell(asked, row)
    """

    def __init__(
        self,
        trace,
        space="paper",
        *,
        objectives=("footprint", "accesses"),
        sampler=None,
        seed=1,
        study=None,
        levels=None,
        metes=None,
    ):
        for name in objectives:
            if name not in OBJECTIVES:
                known = ", ".join(OBJECTIVES)
                raise MetesError(f"there is no objective {name!r}: there are {known}")
        if not objectives or len(set(objectives)) != len(objectives):
            raise MetesError("give at least one objective, each once")
        if not levels and {"energy", "time"} & set(objectives):
            raise MetesError("energy and time are those of memory levels: give levels")
        self.objectives = tuple(objectives)
        self.evaluator = Evaluator(trace, space, levels=levels, metes=metes)
        self.study = study or optuna.create_study(
            directions=["minimize"] * len(self.objectives),
            sampler=sampler or optuna.samplers.NSGAIISampler(seed=seed),
        )
        if [direction.name for direction in self.study.directions] != ["MINIMIZE"] * len(
            self.objectives
        ):
            self.close()
            raise MetesError(f"the study must minimise {len(self.objectives)} values")
        self._rows = {}
        self._worst = None
        self._by_values = {}
        self._axes = [Choice(axis) for axis in self.evaluator.axes if len(axis["values"]) > 1]

    @property
    def rows(self):
        """The rows of all configurations evaluated, in that order."""
        return list(self._rows.values())

    def ask(self):
        """What to try next."""
        trial = self.study.ask()
        # The index first: it decides which other parameters matter.
        index = [axis for axis in self._axes if axis.name == "general.index"]
        values = {axis.name: axis.suggest(trial) for axis in index}
        chosen = values.get("general.index")
        for axis in self._axes:
            if axis.name not in values and (chosen is None or axis.matters(chosen)):
                values[axis.name] = axis.suggest(trial)
        return Asked(trial, values)

    def evaluate(self, asked):
        """The row of what was asked for; ``None`` where these values together are
        no heap. Replayed once, however often it is asked for."""
        key = tuple(sorted((name, str(value)) for name, value in asked.values.items()))
        if key not in self._by_values:
            try:
                row = self.evaluator.row(values=asked.values)
                row = self._rows.setdefault(row["number"], row)
            except NoHeap:
                row = None
            self._by_values[key] = row
        return self._by_values[key]

    def tell(self, asked, row):
        """Tells optuna what came of it.

        Samplers learn nothing from failed trials and would propose the like again
        and again. So where there is no heap, or requests fail, optuna is told
        twice the worst of each objective so far, and the trial's user attribute
        ``serves`` is false. Before any heap served, such trials are failed ones.
        """
        serves = row is not None and row["status"] == "complete"
        asked.trial.set_user_attr("serves", serves)
        if row is not None:
            asked.trial.set_user_attr("number", row["number"])
            asked.trial.set_user_attr("heap", row["heap"])
        if serves:
            point = self.point(row)
            self._worst = [max(pair) for pair in zip(point, self._worst or point)]
            self.study.tell(asked.trial, point)
        elif self._worst:
            self.study.tell(asked.trial, [2 * worst for worst in self._worst])
        else:
            self.study.tell(asked.trial, state=optuna.trial.TrialState.FAIL)

    def point(self, row):
        """The objectives of a row."""
        return [row[OBJECTIVES[name]] for name in self.objectives]

    def run(self, evaluations=1000, trials=None):
        """Searches until so many configurations are evaluated, or all there are.
        A sampler that proposes little that is new ends after ``trials``, four times
        as many unless given. Returns the front."""
        most = self.evaluator.size - self.evaluator.baselines
        goal = min(most, len(self._rows) + evaluations)
        for _ in range(evaluations * TRIALS if trials is None else trials):
            if len(self._rows) >= goal:
                break
            asked = self.ask()
            self.tell(asked, self.evaluate(asked))
        return self.front()

    def front(self):
        """The rows that nothing beats, one for each outcome, by rising objectives."""
        complete = [row for row in self.rows if row["status"] == "complete"]
        complete.sort(key=lambda row: (self.point(row), row["number"]))
        front = []
        for row in complete:
            point = self.point(row)
            beaten = any(all(a <= b for a, b in zip(self.point(own), point)) for own in front)
            if not beaten:
                front.append(row)
        return front

    def close(self):
        """Ends the command; rows and study stay."""
        self.evaluator.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Choice:
    """A parameter of the space as one of optuna's.

    Numbers that rise are suggested by their place, so that samplers know what is
    near; everything else is a category.
    """

    def __init__(self, axis):
        self.name = axis["name"]
        self.values = axis["values"]
        self._index = axis.get("index")
        numbers = [value for value in self.values if isinstance(value, int)]
        words = len(self.values) - len(numbers)
        # `any` and `all` stand at an end of the numbers that they are a limit of.
        ends = self.values[1:-1] if words == 1 else self.values
        self._rising = (
            len(self.values) > 2
            and words < 2
            and numbers == sorted(numbers)
            and all(isinstance(value, int) for value in ends)
        )
        self._spelt = {_spelt(value): value for value in self.values}

    def matters(self, index):
        return self._index is None or index in self._index

    def suggest(self, trial):
        if self._rising:
            return self.values[trial.suggest_int(self.name, 0, len(self.values) - 1)]
        return self._spelt[trial.suggest_categorical(self.name, list(self._spelt))]


def _spelt(value):
    return "+".join(map(str, value)) if isinstance(value, list) else value
