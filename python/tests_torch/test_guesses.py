"""Values that nobody computed: noticed, given, and never a verdict in silence."""

import pytest

MIB = 1 << 20

EXPERTS = """
chosen = torch.randn(1024, 8, device="cuda").argmax(-1)
for expert in range(8):
    rows = torch.where(chosen == expert)[0]
    torch.empty(len(rows), 1 << 10, device="cuda")
"""

LOOP = """
done, steps, kept = torch.zeros(4, dtype=torch.bool, device="cuda"), 0, []
while not done.all():
    steps += 1
    kept.append(torch.empty(1 << 20, dtype=torch.uint8, device="cuda"))
    done |= torch.full((4,), steps >= 100, device="cuda")
print("steps", steps)
"""

#: What only shows or stores what was computed, and what the framework asks by itself.
SHOWN = """
model = torch.nn.Linear(64, 64, device="cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler, total = torch.amp.GradScaler("cuda"), 0.0
for step in range(3):
    loss = model(torch.randn(8, 64, device="cuda")).sum()
    scaler.scale(loss).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    total += loss.item()
    print(f"{step}: {loss.item():.3f} {total / (step + 1)} {loss}")
torch.save({name: value.cpu() for name, value in model.state_dict().items()}, "model.pt")
assert json_of(total) == "0.0"
"""

#: What the host itself wrote.
KNOWN = """
given = torch.tensor([3, 1, 4, 1, 5], device="cuda")
noise = torch.randn(64, 64, device="cuda")
assert given.tolist() == [3, 1, 4, 1, 5]
assert [len(part) for part in noise[:14].split(given.tolist())] == [3, 1, 4, 1, 5]
assert given[2].item() == 4 and given.cpu()[4] == 5 and given.clone().tolist() == given.tolist()
assert not torch.zeros(9, dtype=torch.bool, device="cuda")[3]
assert torch.zeros(1 << 20, device="cuda").cpu().sum() == 0
large = torch.arange(1 << 10).to("cuda")
assert large[1023].item() == 1023
"""

#: Each is written over after the host wrote it.
OVERWRITTEN = """
given = torch.tensor([3, 1, 4], device="cuda")
given.add_(1)
print(given.tolist())
part = torch.empty(1 << 20, dtype=torch.int64, device="cuda")
part[64:67] = torch.tensor([7, 8, 9])
part.mul_(2)
print(part[64].item())
"""

CHECKS = """
loss = torch.randn(64, 10, device="cuda").sum()
assert torch.isfinite(loss)
assert (loss < 1).all() and not torch.isnan(loss).any().item()
if torch.isinf(loss).any():
    raise ValueError("infinite")
assert loss.item() > 3
if not (loss != 0).all():
    raise ValueError("zero")
scores = torch.randn(64, 10, device="cuda")
torch.distributions.Categorical(logits=scores).sample()
torch.distributions.Normal(scores, scores.exp()).rsample()
torch.distributions.Gamma(scores.exp(), scores.exp()).rsample()
torch.distributions.Dirichlet(scores.exp()).sample()
"""


def test_a_size_that_depends_on_what_was_not_computed_decides_nothing(dry):
    script = dry.script(EXPERTS)
    status, report, said = dry.run("--memory", "1GiB", "--", script)
    assert status == 3, said
    assert (report["verdict"], report["fits"], report["completed"]) == ("undecided", None, True)
    (place,) = report["guesses"]
    assert (place["line"], place["reads"], place["use"], place["given"]) == (5, 8, "decision", False)
    assert place["text"] == "torch.where(chosen == expert)"
    # Refused is as undecided as that it fits.
    status, report, said = dry.run("--memory", "2MiB", "--", dry.script(EXPERTS + "torch.ones(MIB, device='cuda')\n".replace("MIB", "1 << 20")))
    assert (status, report["completed"]) == (3, False), said
    assert "out of memory" in report["error"]


def test_values_are_given_by_place(dry):
    script = dry.script(EXPERTS)
    status, report, said = dry.run("--memory", "1GiB", "--reads", "script.py:5=128", "--", script)
    assert status == 0, said
    # The rows of one expert, 128 × 1024 numbers, besides what was there without.
    assert report["peak_live"] > 128 * 1024 * 4
    assert all(place["given"] for place in report["guesses"])
    (dry.place / "rules").write_text("# rows of an expert\nscript.py:<module>=0*7,1024\n")
    status, report, said = dry.run("--memory", "4MiB", "--reads", "@rules", "--", script)
    assert status == 1, said


def test_a_loop_without_end_ends(dry):
    script = dry.script(LOOP)
    status, report, said = dry.run("--memory", "80GiB", "--most-reads", "50", "--", script)
    assert status == 3, said
    assert "script.py:4" in report["ended"] and "not done.all()" in report["ended"]
    assert report["peak_live"] < 60 * MIB
    status, report, said = dry.run("--memory", "80GiB", "--reads", "0*100,1", "--", script)
    assert status == 0 and "steps 100" in said
    assert 100 * MIB <= report["peak_live"] < 101 * MIB
    # One that does not heed the end, with a read inside an operation.
    deaf = """
while True:
    try:
        torch.ones(4, device="cuda").nonzero()
    except BaseException:
        pass
"""
    status, report, said = dry.run("--memory", "1GiB", "--most-reads", "50", "--", dry.script(deaf))
    assert status == 3, said
    assert "script.py:5" in report["ended"]


def test_what_is_only_shown_decides_nothing(dry):
    text = "import json\njson_of = lambda value: json.dumps(value)\n" + SHOWN
    status, report, said = dry.run("--memory", "1GiB", "--", dry.script(text))
    assert status == 0, said
    uses = {place["use"] for place in report["guesses"]}
    assert uses == {"shown", "check"}
    (check,) = [place for place in report["guesses"] if place["use"] == "check"]
    assert check["file"].endswith("grad_scaler.py") and check["called_from"].startswith("script.py:")
    # A number that is compared decides.
    status, report, _ = dry.run(
        "--memory", "1GiB", "--", dry.script('best = torch.ones(1, device="cuda").item() / 2 < 9\n')
    )
    assert (status, report["guesses"][0]["line"]) == (3, 2)


def test_what_the_host_wrote_is_known(dry):
    status, report, said = dry.run("--memory", "1GiB", "--", dry.script(KNOWN))
    assert status == 0, said
    assert report["reads"] > 5 and report["unknown_reads"] == 0
    status, report, said = dry.run("--memory", "1GiB", "--", dry.script(OVERWRITTEN))
    assert (status, report["unknown_reads"]) == (3, 2), said


def test_checks_of_values_pass_and_are_told(dry):
    status, report, said = dry.run("--memory", "1GiB", "--", dry.script(CHECKS))
    assert status == 0, said
    assert {place["use"] for place in report["guesses"]} <= {"check", "shown"}
    assert any(place["called_from"] == "script.py:12" for place in report["guesses"])
    # One that only a value could pass names the place and the remedy.
    text = 'count = torch.ones(3, device="cuda").long().sum().item()\n{1: 2}[count]\n'
    status, report, said = dry.run("--memory", "1GiB", "--", dry.script(text))
    assert (status, report) == (2, None)
    assert "--reads 'script.py:2=VALUES'" in said.splitlines()[-1]
    status, *_ = dry.run("--memory", "1GiB", "--reads", "one", "--", dry.script(text))
    assert status == 0


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("many", "'many' is no value"),
        ("0*x,1", "no count"),
        ("here=1", "'here' is no place"),
        ("@nowhere", "cannot read the rules in nowhere"),
    ],
)
def test_wrong_rules_are_refused(dry, rule, words):
    status, report, said = dry.run("--memory", "1GiB", "--reads", rule, "--", dry.script(""))
    assert (status, report) == (2, None)
    assert words in said and len(said.splitlines()) == 1
