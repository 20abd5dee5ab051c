"""Rules for what reads of the dry device give that nobody computed; see ``metes._guess``."""

import struct

import pytest

from metes import MetesError, dry
from metes._guess import Rule, Rules, encoded


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("zero", [0, 0, 0]),
        ("one", [1, 1, 1]),
        ("0*2,1", [0, 0, 1, 1]),
        ("false, true*2, 7", [0, 1, 1, 7, 7]),
        ("0x10,-3", [16, -3, -3]),
        ("2.5", [2.5, 2.5]),
    ],
)
def test_values_come_one_after_another(text, values):
    rule = Rule.of(text)
    assert [rule.next() for _ in values] == [[value] for value in values]


def test_elements_of_one_read_and_random_ones():
    assert Rule.of("16/48,1").next() == [16, 48]
    drawn = [[Rule.of(f"random:{seed}").next()[0] for _ in range(2)] for seed in (7, 7, 8)]
    assert drawn[0] == drawn[1] != drawn[2]
    rule = Rule.of("random:7")
    assert all(0 <= rule.next()[0] < 1 for _ in range(9)) and rule.next() != rule.next()


@pytest.mark.parametrize("text", ["", "many", "1,,2", "1*", "1*0", "1*-2", "1*x", "random:x", "1*99999999999", "1/"])
def test_what_is_no_rule(text):
    with pytest.raises(MetesError, match="--reads"):
        Rule.of(text)


@pytest.mark.parametrize(
    ("values", "size", "kind", "data"),
    [
        ([0], 5, "float32", bytes(5)),
        ([1], 1, "bool", b"\1"),
        ([0.75], 1, "bool", b"\1"),
        ([0.25], 1, "bool", b"\0"),
        ([3], 8, "int64", struct.pack("<q", 3)),
        ([-1], 8, "int64", b"\xff" * 8),
        ([300], 1, "uint8", b"\x2c"),
        ([1.5], 4, "float32", struct.pack("<f", 1.5)),
        ([1.5], 2, "float16", struct.pack("<e", 1.5)),
        ([1.0], 2, "bfloat16", b"\x80\x3f"),
        ([2], 8, "complex64", struct.pack("<ff", 2, 0)),
        ([16, 48], 24, "int64", struct.pack("<qqq", 16, 48, 16)),
        ([512], 4, None, struct.pack("<i", 512)),
        ([512], 16, None, struct.pack("<qq", 512, 512)),
        ([1], 3, None, b"\1\1\1"),
    ],
)
def test_elements_are_those_of_their_type(values, size, kind, data):
    assert encoded(values, size, kind) == data


def test_places(tmp_path):
    file = tmp_path / "rules"
    file.write_text("# a file\ntrain.py:7=1  # a line\n\nutils.py:is_done=0*3,1\n")
    rules = Rules.of(["2", f"@{file}", "nn/utils.py:9=4"])
    where = {
        ("/a/train.py", 7, "f"): "1",
        ("train.py", 7, "f"): "1",
        ("/a/train.py", 8, "f"): "2",
        ("/a/retrain.py", 7, "f"): "2",
        ("/b/utils.py", 1, "is_done"): "0*3,1",
        ("/nn/utils.py", 9, "g"): "4",
        ("/n/utils.py", 9, "g"): "2",
    }
    for place, text in where.items():
        assert rules.at(*place).text == text
    assert Rules.of([]).at("train.py", 7, "f") is None


@pytest.mark.parametrize("text", ["train.py=1", ":7=1", "train.py:=1", "train.py:7 8=1", "@no/such/file"])
def test_what_is_no_place(text):
    with pytest.raises(MetesError):
        Rules.of([text])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--memory", "24"], "--memory 24 is 24 bytes only: give a unit, as 24GiB"),
        (["--memory", "1MiB"], "give 2.00 MiB at least"),
        (["--memory", "24GiB", "--reserve", "2"], "--reserve 2 is 2 bytes only: give a unit, as 2GiB"),
        (["--memory", "24GiB", "--smallest", "100"], "as 100GiB"),
        (["--memory", "24GiB", "--most-reads", "-1"], "--most-reads is below 0"),
    ],
)
def test_amounts_without_a_unit_are_refused(monkeypatch, capsys, arguments, words):
    monkeypatch.setattr("sys.argv", ["metes.dry", *arguments, "--", "x.py"])
    assert dry.main() == 2
    assert words in capsys.readouterr().err
