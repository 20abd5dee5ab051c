"""Curves of Python: numbers in and out, operators, values, errors.

What the operations compute is tested where they are written; here, that they are reached. The
extension module comes with the wheel: scripts/wheel runs these tests on the installed one.
"""

import math
import pickle
from fractions import Fraction

import pytest

curve = pytest.importorskip("metes.curve", reason="without the wheel; scripts/wheel runs them")
numpy = pytest.importorskip("numpy")
Curve = curve.Curve

STAIRS = Curve.staircase(0, 4, 3)
SERVICE = Curve.rate_latency(2, 3)


def test_numbers_of_every_kind_are_taken_exactly():
    half = Curve.affine(Fraction(1, 2), 0)
    assert Curve.affine(0.5, 0) == Curve.affine("1/2", "0") == half
    assert Curve.affine(numpy.float64(0.5), numpy.int64(0)) == half
    # A float is what it is, not what it is written as.
    assert Curve.affine(0.1, 0) != Curve.affine("1/10", 0)
    for wrong, error in [(math.nan, ValueError), (math.inf, ValueError), ("x", ValueError), (None, TypeError)]:
        with pytest.raises(error):
            Curve.affine(wrong, 0)


def test_values_are_exact_or_floats_as_asked():
    value = SERVICE(Fraction(10, 3))
    assert value == Fraction(2, 3) and isinstance(value, Fraction)
    assert SERVICE(4) == 2 and isinstance(SERVICE(4), Fraction)
    assert SERVICE(4.5) == 3.0 and isinstance(SERVICE(4.5), float)
    assert Curve.delay(3)(4) == math.inf
    times = numpy.linspace(0, 20, 84).reshape(4, 21)
    values = STAIRS(times)
    assert values.shape == (4, 21)
    # At the very floats, which may be above or below a jump.
    exact = [float(STAIRS(Fraction(time))) for time in times.ravel().tolist()]
    assert values.ravel().tolist() == exact
    assert STAIRS([4, 4.5, 8]).tolist() == [3.0, 6.0, 6.0]
    assert (STAIRS.limit_before(4), STAIRS.limit_behind(4)) == (3, 6)
    for wrong in (-1, -0.5, [0.0, -1.0], math.nan):
        with pytest.raises(ValueError, match="no value"):
            STAIRS(wrong)


def test_operators_are_operations():
    assert STAIRS & SERVICE == STAIRS.minimum(SERVICE)
    assert STAIRS | SERVICE == STAIRS.maximum(SERVICE)
    assert STAIRS * SERVICE == STAIRS.convolution(SERVICE) == SERVICE * STAIRS
    assert STAIRS / SERVICE == STAIRS.deconvolution(SERVICE)
    assert STAIRS(SERVICE) == STAIRS.compose(SERVICE)
    assert STAIRS + SERVICE - STAIRS == SERVICE
    assert 2 * STAIRS == STAIRS + STAIRS == STAIRS / Fraction(1, 2)
    assert 1 + STAIRS - 1 == STAIRS and 5 - (5 - STAIRS) == STAIRS
    assert -(-STAIRS) == STAIRS
    assert (STAIRS & math.inf) == STAIRS and (math.inf & STAIRS) == STAIRS
    assert SERVICE <= SERVICE + 1 and not SERVICE + 1 <= SERVICE and SERVICE + 1 >= SERVICE
    with pytest.raises(TypeError):
        STAIRS + "x"
    with pytest.raises(TypeError):
        STAIRS < SERVICE
    with pytest.raises(ZeroDivisionError):
        STAIRS / 0


def test_every_operation_of_one_curve_is_reached():
    assert SERVICE.lower_pseudo_inverse() == Curve.token_bucket("1/2", 3)
    assert SERVICE.upper_pseudo_inverse() == Curve.affine("1/2", 3)
    assert Curve.affine(1, 0).floor() == Curve.staircase_at(1, 1, 1)
    assert Curve.affine(1, 0).ceiling() == Curve.staircase(0, 1, 1)
    assert STAIRS.subadditive_closure() == STAIRS
    assert SERVICE.superadditive_closure() == SERVICE
    falling = Curve.through([(0, 0), (1, 2), (2, 1)], 1)
    assert falling.upper_nondecreasing_closure() == Curve.through([(0, 0), (1, 2), (3, 2)], 1)
    assert falling.lower_nondecreasing_closure() == Curve.through([(0, 0), ("1/2", 1), (2, 1)], 1)
    assert STAIRS.right_continuous().left_continuous() != STAIRS.right_continuous()
    assert STAIRS.delayed(2).advanced(2) == STAIRS
    assert STAIRS.stretched(2) == Curve.staircase(0, 8, 3)


def test_deviations_are_fractions_or_infinite():
    bucket = Curve.token_bucket(1, 4)
    assert bucket.horizontal_deviation(SERVICE) == 5
    assert bucket.vertical_deviation(SERVICE) == 7
    assert SERVICE.horizontal_deviation(bucket) == math.inf
    assert SERVICE.z_deviation(SERVICE - 1) == Fraction(13, 2)


def test_curves_are_values():
    assert len({STAIRS, Curve("stair(0, 4, 3)"), Curve.sporadic(4, 3)}) == 1
    assert STAIRS != SERVICE and STAIRS != 3
    assert pickle.loads(pickle.dumps(STAIRS)) == STAIRS
    assert Curve.from_json(STAIRS.to_json()) == STAIRS
    assert eval(repr(STAIRS)) == STAIRS and Curve(str(SERVICE)) == SERVICE
    parts = (STAIRS.transient, STAIRS.period, STAIRS.step)
    assert parts == (0, 4, 3)
    assert STAIRS.elements == [(0, 0), (0, 4, 3, 0)]
    assert Curve.of_elements(STAIRS.elements, *parts) == STAIRS
    delay = Curve.delay(2)
    again = Curve.of_elements(delay.elements, delay.transient, delay.period, delay.step)
    assert again == delay
    assert "<svg" in STAIRS._repr_svg_()


def test_chains_and_scripts():
    curves = [STAIRS, SERVICE, Curve.token_bucket(1, 4)]
    expected = STAIRS * SERVICE * curves[2]
    for plan in ("automatic", "subsets", "3,2,1", "shortest/longest"):
        assert curve.chain(curves, plan) == expected
    assert curve.evaluate("f * g", f=STAIRS, g=SERVICE) == STAIRS * SERVICE
    assert curve.evaluate("hDev(bucket(1, 4), g)", g=SERVICE) == 5
    with pytest.raises(ValueError, match="no plan"):
        curve.chain(curves, "best")
    with pytest.raises(ValueError, match="line 1, column 5"):
        curve.evaluate("f * g", f=STAIRS)


def test_curves_that_begin_late_take_no_more_than_the_limit():
    late = curve.evaluate("stair(999999999999, 12, 1) * ratency(1, 3)", limit=100)
    assert (late.period, late.step) == (12, 1)
    assert Curve("stair(99999999999, 3, 1) *^ zero").period == 3


def test_bad_input_is_one_clear_error():
    for build, said in [
        (lambda: Curve("stair(0, 0, 1)"), "length of a staircase is 0"),
        (lambda: Curve("3"), "is the number 3"),
        (lambda: Curve.token_bucket(-1, 4), "rate of a token bucket is -1"),
        (lambda: Curve.of_elements([(0, 0)], 0, 1, 0), "missing"),
        (lambda: Curve.of_elements([(0, 0, 0)], 0, 1, 0), "3 numbers"),
        (lambda: Curve.from_json("{"), "no curve in JSON"),
        (lambda: Curve.constant(math.inf) - Curve.constant(math.inf), "∞"),
        (
            lambda: Curve.staircase(0, 1009, 1009).minimum(Curve.staircase(0, 1013, 1013), limit=100),
            "more than the limit of 100",
        ),
        (lambda: curve.evaluate("hShift(stair(0, 1, 1), -1000)", limit=100), "more than the limit of 100"),
        (lambda: Curve.from_json(STAIRS.to_json().replace('"4"', '"' + "9" * 400_000 + '"')), "digits"),
    ]:
        with pytest.raises(ValueError, match=said):
            build()
