"""Exact arrival and service curves: (min,+) and (max,+) algebra.

    >>> from fractions import Fraction
    >>> from metes.curve import Curve
    >>> arrival = Curve.token_bucket(1, 4)
    >>> service = Curve.rate_latency(2, 3) * Curve.rate_latency(3, 1)
    >>> arrival.horizontal_deviation(service)
    Fraction(6, 1)
    >>> service(Fraction(9, 2)), service(4.5)
    (Fraction(1, 1), 1.0)

Numbers that go in may be int, ``Fraction``, float (taken as the fraction that it is) or text such
as ``"22/7"``; what comes out is a ``Fraction``, or an infinite float. Only values at times that
are floats come as floats: ``service(numpy.linspace(0, 10, 1000))`` is an array.

Invariant: curves do not change, and equal functions are equal objects with equal hashes.
"""

from ._native import Curve, chain, evaluate

__all__ = ["Curve", "chain", "evaluate"]
