"""The verdict of a dry run: what its processes say, taken together, and how sure that is.

Invariant: a run whose decisions went by values that nobody computed is undecided, whether it came
to its end or was refused memory; so is one that was ended because it went on for ever.
"""

FITS, DOES_NOT_FIT, UNDECIDED = "fits", "does not fit", "undecided"
#: Exit statuses; 2 is an error, without a verdict.
STATUS = {FITS: 0, DOES_NOT_FIT: 1, UNDECIDED: 3}

#: Outcomes of processes, those first that outweigh the others.
OUTCOMES = ("refused", "endless", "failed", "completed")
#: Places that are told of each kind.
TOLD = 8


def of(outcome: str, guesses: list[dict]) -> str:
    """The verdict of a run."""
    if outcome == "endless" or decisions(guesses):
        return UNDECIDED
    return FITS if outcome == "completed" else DOES_NOT_FIT


def decisions(guesses: list[dict]) -> list[dict]:
    """Places where the program decided by what nobody computed or gave."""
    return [place for place in guesses if place["use"] == "decision" and not place["given"]]


def together(documents: list[dict]) -> dict:
    """One document for the process that ran the script, which comes first, and those that it
    began: outcomes by their weight, peaks of the one that has most, counts of all."""
    first, *rest = documents
    used = [document for document in documents if document.get("device")]
    if not rest or not used:
        return first
    weight = {name: number for number, name in enumerate(OUTCOMES)}
    # What a process that was begun says tells more than that it ended badly.
    worst = min([*rest, first], key=lambda document: weight[document["outcome"]])
    found = {name: worst.get(name) for name in ("outcome", "error", "remedy")}
    found["torch"] = used[0]["torch"]
    found["processes"] = len(used)
    found["statistics"] = _most([document["statistics"] for document in used])
    devices = [document["device"] for document in used]
    calls: dict[str, int] = {}
    for device in devices:
        for name, count in device["calls"].items():
            calls[name] = calls.get(name, 0) + count
    sums = ("reads", "read_bytes", "unknown_reads", "unknown_bytes")
    plain = [{name: value for name, value in device.items() if name != "calls"} for device in devices]
    found["device"] = (
        _most(plain) | {name: sum(device[name] for device in devices) for name in sums} | {"calls": calls}
    )
    most = max(used, key=lambda document: document["statistics"].get("peak_requested", 0))
    found |= {name: most.get(name) for name in ("breakdown", "no_history")}
    largest = max(used, key=lambda document: document["device"]["peak_used"])
    found |= {name: largest.get(name) for name in ("breakdown", "no_history")}
    guesses = [place for document in used for place in document["reads"]["guesses"]]
    ended = next((d["reads"]["ended"] for d in used if d["reads"]["ended"]), None)
    found["reads"] = {"guesses": guesses, "ended": ended}
    return {**first, **found}


def _most(figures: list[dict]) -> dict:
    names = {name: None for one in figures for name in one}
    return {name: max(one.get(name, 0) for one in figures) for name in names}


def headline(verdict: str, outcome_fits: bool, size: str, guesses: list[dict], ended: bool) -> str:
    """The verdict in one sentence, behind the script's name."""
    given = any(place["given"] for place in guesses)
    by = ", with the values that --reads gives" if given else ""
    if verdict != UNDECIDED:
        return f"{verdict} into {size}{by}"
    if ended:
        return f"is undecided: it was ended before it came to its end on {size}{by}"
    does = "fits" if outcome_fits else "does not fit"
    return f"is undecided: it {does} into {size}, if what it guessed is right{by}"


def lines(guesses: list[dict], ended: str | None) -> list[str]:
    """What was guessed, for people."""
    found = []
    if ended:
        found.append(f"Ended, as {ended}:")
        found.append(
            "  give it values with --reads, or if it does come to its end, allow more with --most-reads"
        )
    decided = decisions(guesses)
    if decided:
        found.append("It went by values that nobody computed, which were taken for zeros, at")
        found += _places(decided)
        example = decided[0]
        found.append(
            "  give it values: --reads "
            f"'{_named(example)}=VALUES', as 1, 0*19,1 or 512; @FILE has many"
        )
    checks = [place for place in guesses if place["use"] == "check" and not place["given"]]
    if checks:
        found.append("Checks of values were taken to pass, at")
        found += _places(checks)
    given = [place for place in guesses if place["given"]]
    if given:
        found.append("Values were given by --reads, at")
        found += _places(given)
    return found


def _named(place: dict) -> str:
    """A place as --reads takes it, as short as can be."""
    file = place["file"]
    return f"{file.rpartition('/')[2] if file.startswith('/') else file}:{place['line']}"


def _places(places: list[dict]) -> list[str]:
    found = []
    for place in places[:TOLD]:
        times = f"{place['reads']:,} time{'s' if place['reads'] > 1 else ''}"
        by = f", by {place['called_from']}" if place["called_from"] else ""
        found.append(f"  {_named(place)}{by}, {times}: {place['text']}")
    if len(places) > TOLD:
        found.append(f"  and at {len(places) - TOLD} more")
    return found


def remedy(document: dict) -> str:
    """What may help a script that failed for another reason than memory."""
    said = document.get("remedy")
    guesses = document.get("reads", {}).get("guesses", [])
    decided = decisions(guesses) or [place for place in guesses if not place["given"]]
    if said:
        return f" ({said})"
    if decided:
        last = decided[-1]
        return (
            f" (it read values that nobody computed, as {last['text']} at {last['file']}:{last['line']}: if "
            f"it failed because of them, give it others with --reads '{_named(last)}=VALUES')"
        )
    return ""
