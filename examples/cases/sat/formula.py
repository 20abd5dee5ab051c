"""Writes a random 3-SAT formula in DIMACS: formula.py VARIABLES CLAUSES SEED FILE.

Deterministic: a linear congruential generator draws the literals."""

import sys


def main():
    variables, clauses, state = (int(word) for word in sys.argv[1:4])

    def below(end):
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) & (2**64 - 1)
        return (state >> 33) % end

    with open(sys.argv[4], "w") as file:
        file.write(f"p cnf {variables} {clauses}\n")
        for _ in range(clauses):
            chosen = set()
            while len(chosen) < 3:
                chosen.add(1 + below(variables))
            literals = [variable if below(2) else -variable for variable in sorted(chosen)]
            file.write(" ".join(map(str, literals)) + " 0\n")


main()
