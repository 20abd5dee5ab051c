"""Fits by statsmodels and quantiles by scipy, to which tests/it/peers.rs holds ours.

python3 -m venv v && v/bin/pip install numpy scipy statsmodels && v/bin/python fits.py > fits.json
"""

import json

import numpy
import scipy.stats
import statsmodels.api
import statsmodels.stats.outliers_influence

TERMS = {
    "cpu-cycles": lambda cpu, memory, voltage: 1 / cpu,
    "memory-cycles": lambda cpu, memory, voltage: 1 / memory,
    "constant": lambda cpu, memory, voltage: 1 + 0 * cpu,
    "floor": lambda cpu, memory, voltage: 1 + 0 * cpu,
    "cpu-cubed": lambda cpu, memory, voltage: cpu**3,
    "cpu": lambda cpu, memory, voltage: cpu,
    "switching": lambda cpu, memory, voltage: voltage**2 * cpu,
    "leakage": lambda cpu, memory, voltage: voltage,
    "memory": lambda cpu, memory, voltage: memory,
}
CASES = [
    ("time", ["cpu-cycles", "memory-cycles", "constant"], [1.7, 0.1, 0.3]),
    ("time", ["cpu-cycles", "memory-cycles"], [40.0, 3.0]),
    ("time", ["cpu-cycles"], [2.0]),
    ("power", ["floor", "cpu-cubed", "memory"], [2.3, 0.27, 0.21]),
    ("power", ["floor", "cpu", "cpu-cubed", "memory"], [2.0, 0.1, 0.3, 0.2]),
    ("power", ["floor", "switching", "memory"], [1.5, 0.6, 0.2]),
    ("power", ["floor", "switching", "leakage", "memory"], [0.5, 0.6, 0.8, 0.2]),
]


def case(number, quantity, names, truth, confidence):
    random = numpy.random.default_rng(number)
    points = int(random.integers(len(names) + 2, 40))
    cpu = random.integers(600, 1401, points) / 1000
    memory = random.integers(200, 501, points) / 1000
    voltage = random.integers(900, 1300, points) / 1000
    columns = numpy.column_stack([TERMS[name](cpu, memory, voltage) for name in names])
    clean = columns @ numpy.array(truth)
    measured = clean * (1 + 0.02 * random.standard_normal(points))
    fit = statsmodels.api.OLS(measured, columns).fit()
    influence = statsmodels.stats.outliers_influence.OLSInfluence(fit)
    new = [0.77, 0.33, 1.01]
    row = numpy.array([[float(TERMS[name](numpy.float64(new[0]), *new[1:])) for name in names]])
    foretold = fit.get_prediction(row)
    return {
        "quantity": quantity,
        "terms": names,
        "confidence": confidence,
        "points": numpy.column_stack([cpu, memory, voltage, measured]).tolist(),
        "parameters": fit.params.tolist(),
        "errors": fit.bse.tolist(),
        "intervals": fit.conf_int(1 - confidence).tolist(),
        "deviation": float(numpy.sqrt(fit.scale)),
        "r_squared": float(1 - fit.ssr / numpy.sum((measured - measured.mean()) ** 2)),
        "leverages": influence.hat_matrix_diag.tolist(),
        "studentised": influence.resid_studentized_external.tolist(),
        "new": new,
        "foretold": float(foretold.predicted_mean[0]),
        "interval": foretold.conf_int(obs=True, alpha=1 - confidence)[0].tolist(),
    }


fits = [
    case(number, *CASES[number % len(CASES)], [0.9, 0.95, 0.99][number % 3])
    for number in range(14)
]
quantiles = [
    [confidence, freedom, float(scipy.stats.t.ppf(0.5 + confidence / 2, freedom))]
    for confidence in (0.5, 0.9, 0.95, 0.99, 0.9999)
    for freedom in (1, 2, 3, 5, 10, 33, 100, 1000)
]
print(json.dumps({"fits": fits, "quantiles": quantiles}))
