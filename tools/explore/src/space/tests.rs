use std::collections::HashSet;

use super::*;
use crate::events::{EventsBuilder, Operation};

fn events() -> Events {
    let mut builder = EventsBuilder::new();
    for serial in 0..1000_u64 {
        let size = [1514, 66, 1514, 1514, 900, 66, 40, 5000, 200, 30_000][(serial % 10) as usize];
        builder.push(Operation::Allocate, serial, size, 0).unwrap();
    }
    builder.finish()
}

fn space(text: &str) -> Result<Space, String> {
    let description = SpaceDescription::parse(text, "s.toml").map_err(|error| error.one_line())?;
    Space::new(&description, &events(), text, "s.toml").map_err(|error| error.to_string())
}

#[test]
fn built_in_spaces_have_the_points_they_say() {
    let paper = space(PAPER).unwrap();
    assert_eq!(paper.raw(), 106_496);
    // 2 x 4 structures, 4 x 13 kinds of search, 1 + 8 values of either limit.
    assert_eq!(paper.size(), 2 * 4 * 4 * 13 * 9 * 9 + paper.baselines());
    let prototype = space(PROTOTYPE).unwrap();
    assert_eq!(prototype.raw(), 102_400);
    assert_eq!((prototype.size(), prototype.baselines()), (32_400, 0));
}

const MIXED: &str = r#"
[general]
count = [1, 2]
split = [75, 1000]
level = ["main", ["near", "main"]]
index = ["list", "classes", "buddy", "kingsley", "lea", "ose"]
[lea]
keep_up_to = ["never", 64]
[ose]
sizes = ["default", "fitted", [64, 1024]]
[list]
fit = ["first", ["best", "exact"]]
order = ["lifo", "address"]
links = ["single", "double"]
max_fit = ["any", 150]
[classes]
second_level = [1, 8]
probes = [0, "all"]
[buddy]
order = ["lifo", "address"]
[dedicated]
count = { from = 0, to = 3, step = 1 }
level = ["main", ["near", "main"]]
[objects]
count = [0, 1]
[coalescing]
pools = [0, 1, 2]
up_to = ["any", "2 KiB"]
[splitting]
pools = [0, 2]
down_to = [64]
[arena]
increment = [4096]
[[level]]
name = "near"
size = ["64 KiB", "128 KiB"]
[[level]]
name = "main"
size = "4 MiB"
[named]
heaps = ["kingsley", "tlsf:second_level=4"]
"#;

#[test]
fn every_number_is_another_valid_heap() {
    let space = space(MIXED).unwrap();
    assert_eq!(space.named(1), Some("tlsf:second_level=4"));
    let mut met = HashSet::new();
    for number in space.baselines()..space.size() {
        let config = space.describe(number).unwrap();
        assert_eq!(config.heap.validate(16, 8), Ok(()), "{config}");
        // The level's size is a part of what a configuration is.
        let key = (config.heap, config.levels[0].size);
        assert!(met.insert(key), "{number}: {config}");
    }
    assert!(met.len() as u128 <= space.raw());
    assert!(met.len() > 5000, "{}", met.len());
    assert_eq!(space.describe(space.size()), None);
    let alone = |heap: &metes_heap::Description| heap.general.len() > 2;
    assert!(
        met.iter().any(|(heap, _)| alone(heap)),
        "a pool of its own in a level"
    );
}

#[test]
fn what_is_described_is_written_and_read_back() {
    let space = space(MIXED).unwrap();
    for number in (0..space.size()).step_by(97) {
        let config = space.describe(number).unwrap();
        let text = config.to_toml();
        let again = metes_config::parse(&text, "heap.toml");
        assert_eq!(
            again.map(|again| again.heap),
            Ok(config.normal().heap),
            "{text}"
        );
    }
}

#[test]
fn each_pool_has_a_fit_of_its_own() {
    let text =
        "[general]\ncount = [1, 2, 3]\nsplit = [[75, 1000]]\n[list]\nfit = [[\"best\", \"first\"]]";
    let space = space(text).unwrap();
    let fits = |count: u64| {
        let values = AxisValues::from([("general.count".to_owned(), AxisValue::Number(count))]);
        let config = space.describe(space.number(&values).unwrap()).unwrap();
        let fit = |pool: metes_heap::description::General| match pool.index {
            metes_heap::IndexKind::List { fit, .. } => fit,
            other => panic!("a list, not {other:?}"),
        };
        config.heap.general.iter().map(fit).collect::<Vec<_>>()
    };
    use metes_heap::Fit::{Best, First};
    // One a pool, the last pool's last; the first for all before it.
    assert_eq!(fits(1), [First]);
    assert_eq!(fits(2), [Best, First]);
    assert_eq!(fits(3), [Best, Best, First]);
}

#[test]
fn lea_and_fixed_sizes_have_parameters_of_their_own() {
    let space = space(MIXED).unwrap();
    let index = |json: &str| {
        let number = space.number(&values(json)).unwrap();
        let config = space.describe(number).unwrap();
        config.heap.general.iter().next().unwrap().index
    };
    use metes_heap::{IndexKind, SizeTable};
    assert_eq!(
        index(r#"{"general.index": "lea", "lea.keep_up_to": 64}"#),
        IndexKind::Lea { keep_up_to: 64 }
    );
    assert_eq!(
        index(r#"{"general.index": "lea"}"#),
        IndexKind::Lea { keep_up_to: 0 }
    );
    let sizes = |table: &str| match index(&format!(
        r#"{{"general.index": "ose", "ose.sizes": {table}}}"#
    )) {
        IndexKind::FixedSizes { sizes } => sizes,
        other => panic!("fixed sizes, not {other:?}"),
    };
    assert_eq!(sizes(r#""default""#), SizeTable::DEFAULT);
    assert_eq!(sizes(r#""fitted""#), crate::fitted_sizes(&events()));
    assert_eq!(Some(sizes("[64, 1024]")), SizeTable::new(&[64, 1024]));
}

#[test]
fn a_level_without_a_size_has_no_limit_of_its_own() {
    let text = MIXED.replace("size = \"4 MiB\"\n", "");
    let space = space(&text).unwrap();
    let config = space.describe(space.size() - 1).unwrap();
    assert_eq!(config.levels[1].size, None);
    assert!(config.levels[0].size.is_some());
    assert!(space.axes().iter().all(|axis| axis.name != "level.main"));
    for number in (space.baselines()..space.size()).step_by(53) {
        assert_eq!(space.number(&space.values(number).unwrap()), Ok(number));
    }
}

#[test]
fn values_and_numbers_name_each_other() {
    let space = space(MIXED).unwrap();
    for number in space.baselines()..space.size() {
        let values = space.values(number).unwrap();
        assert_eq!(space.number(&values), Ok(number), "{values:?}");
    }
    assert_eq!(space.values(0), None, "a heap to compare with has none");
    assert_eq!(space.values(space.size()), None);
    // What is left out has its first value.
    let (first, none) = (space.baselines(), AxisValues::new());
    assert_eq!(space.number(&none), Ok(first));
}

/// Values as a question has them.
fn values(json: &str) -> AxisValues {
    serde_json::from_str(json).unwrap()
}

#[test]
fn parameters_that_cannot_matter_name_the_same() {
    let space = space(MIXED).unwrap();
    let number = |json: &str| space.number(&values(json));
    let never = number(r#"{"coalescing.pools": 0}"#).unwrap();
    assert_eq!(
        number(r#"{"coalescing.pools": 0, "coalescing.up_to": 2048}"#),
        Ok(never)
    );
    assert_ne!(
        number(r#"{"coalescing.pools": 1, "coalescing.up_to": 2048}"#),
        Ok(never)
    );
    // Those of another index are none of this one's.
    let buddy = number(r#"{"general.index": "buddy", "buddy.order": "address"}"#).unwrap();
    let also = r#"{"general.index": "buddy", "buddy.order": "address",
        "list.fit": ["best", "exact"]}"#;
    assert_eq!(number(also), Ok(buddy));
    let heap = space.describe(buddy).unwrap().heap;
    let pool = heap.general.iter().next().unwrap();
    assert_eq!(pool.index, metes_heap::IndexKind::Buddy { lowest: true });
}

#[test]
fn axes_are_those_of_the_file() {
    let space = space(MIXED).unwrap();
    let axes = space.axes();
    let axis = |name: &str| axes.iter().find(|axis| axis.name == name).unwrap();
    let spelt = |name: &str| {
        let values = axis(name).values.iter().map(ToString::to_string);
        values.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(spelt("general.level"), "main near+main");
    assert_eq!(spelt("coalescing.up_to"), "any 2048");
    assert_eq!(spelt("classes.probes"), "0 all");
    assert_eq!(spelt("level.near"), "65536 131072");
    assert_eq!(axis("general.count").index, None);
    let with = |name: &str| serde_json::to_string(&axis(name).index).unwrap();
    assert_eq!(with("buddy.order"), r#"["buddy"]"#);
    assert_eq!(with("splitting.pools"), r#"["list","classes"]"#);
}

#[test]
fn values_that_the_space_does_not_have_are_refused() {
    let space = space(MIXED).unwrap();
    let wrong = |json: &str| space.number(&values(json)).unwrap_err().to_string();
    assert_eq!(
        wrong(r#"{"list.fti": "first"}"#),
        "the space has no parameter `list.fti` (did you mean `list.fit`?)"
    );
    assert_eq!(
        wrong(r#"{"coalescing.up_to": 77}"#),
        "`coalescing.up_to` is not 77 in this space: its values are any, 2048"
    );
}

#[test]
fn values_that_are_no_heap_together_are_told_from_wrong_ones() {
    let text = r#"
[general]
count = [1, 2]
split = [75]
level = "main"
[dedicated]
count = [0, 4]
level = ["main", "near"]
[[level]]
name = "near"
size = "64 KiB"
[[level]]
name = "main"
size = "4 MiB"
"#;
    let space = space(text).unwrap();
    let number = |json: &str| space.number(&values(json));
    assert!(number(r#"{"dedicated.count": 4}"#).is_ok());
    // One in another level is a general pool: five or six of at most four.
    let far = r#"{"dedicated.count": 4, "dedicated.level": "near"}"#;
    assert_eq!(number(far), Err(AxisError::NoHeap));
}

#[test]
fn neighbours_are_mutual_and_reach_everything() {
    let space = space(MIXED).unwrap();
    let mut reached: HashSet<u64> = HashSet::from([space.baselines()]);
    let mut open = vec![space.baselines()];
    while let Some(number) = open.pop() {
        for other in space.neighbours(number) {
            assert!(space.baselines() <= other && other < space.size());
            assert_ne!(other, number);
            if reached.insert(other) {
                open.push(other);
            }
        }
    }
    assert_eq!(reached.len() as u64, space.size() - space.baselines());
}

#[test]
fn crosses_are_of_the_space() {
    let space = space(MIXED).unwrap();
    let mut random = crate::random::Random::new(3);
    for _ in 0..500 {
        let mut draw = || random.below(space.size() as usize) as u64;
        let (a, b) = (draw(), draw());
        let child = space.cross(a, b, &mut || random.below(2) == 0);
        assert!(space.describe(child).is_some());
        assert_eq!(space.cross(a, a, &mut || true), a);
    }
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let wrong = |text: &str| match space(text) {
        Err(error) => error,
        Ok(space) => panic!("{text} gave {} configurations", space.size()),
    };
    let cases = [
        (
            "[general]\ncuont = [1]",
            "s.toml:2:1: a space has no `cuont` here (did you mean `count`?)",
        ),
        ("[lsit]\nfit = \"first\"", "did you mean `list`?"),
        (
            "[list]\nfit = [\"frist\"]",
            "s.toml:2:8: a fit is expected, not `frist` (did you mean `first`?)",
        ),
        (
            "[list]\ndepth = [0]",
            "a depth of search from 1 to 100 percent is expected, not 0",
        ),
        ("[list]\ndepth = []", "at least one value"),
        ("[list]\ndepth = [5, 5]", "`5` is listed twice"),
        (
            "[list]\ndepth = { from = 5, to = 1, step = 1 }",
            "a range needs",
        ),
        ("[list]\ndepth = [[5]]", "not a list in a list"),
        (
            "[coalescing]\nup_to = [128, 256]\n[splitting]\ndown_to = [512]",
            "`down_to` in line 4 leaves at least 512 bytes, but `up_to` in line 2 merges up to 256 bytes only",
        ),
        ("[general]\ncount = 3", "3 general pools need `split"),
        (
            "[general]\ncount = 3\nsplit = [64]",
            "splits requests among 2 pools, but `count` goes up to 3",
        ),
        (
            "[general]\ncount = 5",
            "there can be 1 to 4 general pools, not 5",
        ),
        (
            "[general]\nlevel = \"near\"",
            "levels are described by `[[level]]` sections",
        ),
        (
            "[[level]]\nname = \"near\"\nsize = 100",
            "level `near` of 100 bytes is too small for a pool: it needs 156 more",
        ),
        (
            "[dedicated]\ncount = 2\nsizes = [66]",
            "`count` goes up to 2 dedicated pools, but there are 1 sizes",
        ),
        (
            "[objects]\ncount = 1\nslab = 1000",
            "a slab is a power of two",
        ),
        ("[named]\nheaps = [\"tslf\"]", "did you mean `tlsf`?"),
        (
            "[lea]\nkeep_up_to = 40",
            "a multiple of 16 up to 256 bytes, or `never`, is expected, not 40",
        ),
        (
            "[ose]\nsizes = [[64, 48]]",
            "up to 8 block sizes are expected, rising multiples of 32",
        ),
        ("[ose]\nsizes = \"fited\"", "did you mean `fitted`?"),
        (
            "[[level]]\nname = \"near\"\nsize = \"any\"",
            "leave `size` out for what --levels gives it",
        ),
        (
            "[classes]\nsecond_level = [3]",
            "a power of two from 1 to 32, not 3",
        ),
        (
            "[general]\nlevel = \"main\"\n[dedicated]\ncount = 4\nlevel = \"near\"\nsizes = [66, 200, 900, 1514]\n[[level]]\nname = \"near\"\nsize = 4096\n[[level]]\nname = \"main\"\nsize = \"1 MiB\"",
            "no point of the space is a heap",
        ),
    ];
    for (text, expected) in cases {
        let error = wrong(text);
        assert!(error.contains(expected), "{text}\n  gave {error}");
    }
}

#[test]
fn a_space_too_large_to_number_is_refused() {
    let many: Vec<String> = (1..6000).map(|n| n.to_string()).collect();
    let text = format!(
        "[coalescing]\nup_to = [{0}]\n[splitting]\ndown_to = [{0}]",
        many.join(",")
    );
    assert!(space(&text).unwrap_err().contains("list fewer values"));
}

#[test]
fn partitions_are_explored_in_place_of_object_pools() {
    let text = "[objects]\ncount = [0, 1]\n[partition]\npage = [\"none\", 4096, \"16 KiB\"]\n\
                largest = [200, 900]\nfactor = [1.125, \"1.25\", 2]\n[named]\nheaps = []\n";
    let own = space(text).unwrap();
    // Without pages: with object pools and without. With: none beside them.
    assert_eq!(own.size(), 2 + 2 * 2 * 3);
    let heaps = (0..own.size()).map(|number| own.describe(number).unwrap().heap);
    let partitions: Vec<_> = heaps.filter_map(|heap| heap.partition).collect();
    assert_eq!(partitions.len(), 12);
    assert!(
        partitions
            .iter()
            .any(|own| own.factor == 2000 && own.page == 16384)
    );
    let one = space("[partition]\nsmallest = 32\n[named]\nheaps = []\n").unwrap();
    let partition = one.describe(0).unwrap().heap.partition.unwrap();
    assert_eq!((partition.page, partition.smallest), (16384, 32));
    let moving = space("[named]\nheaps = [\"compact-fit\"]\n").unwrap_err();
    assert!(moving.contains("moving=no"), "{moving}");
    let factor = space("[partition]\nfactor = 0.5\n").unwrap_err();
    assert!(factor.contains("a factor above 1"), "{factor}");
}
