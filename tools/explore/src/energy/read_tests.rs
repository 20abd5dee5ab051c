//! Files and specifications, good and bad.

use super::*;
use crate::energy::table::Leakage;

fn parse(text: &str) -> Result<Hierarchy, EnergyError> {
    Hierarchy::parse(text, "levels.toml", Path::new(""))
}

/// The error in one line.
fn refusal(text: &str) -> String {
    match parse(text) {
        Ok(hierarchy) => panic!("{text} was taken as {hierarchy:?}"),
        Err(EnergyError::File(error)) => error.one_line(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_specification_and_a_file_say_the_same() {
    let file = parse(
        "[[level]]\nname = \"scratchpad\"\nsize = \"64 KiB\"\n\
         [[level]]\nname = \"main\"\nsize = \"1 MiB..8 MiB\"\ntable = \"sram\"\n",
    );
    let spec = Hierarchy::spec(" scratchpad = 64KiB, main=1MiB..8MiB@sram").unwrap();
    assert_eq!(file.unwrap(), spec);
    let sizes: Vec<u64> = spec.levels()[1]
        .memories()
        .iter()
        .map(|c| c.size >> 20)
        .collect();
    assert_eq!(sizes, [1, 2, 4, 8]);
    assert_eq!(spec.clock_hz(), 200_000_000);
    assert_eq!(spec.sizes()[..3], [Some(65536), Some(8 << 20), None]);
}

#[test]
fn own_figures_replace_those_of_a_table() {
    let text = "[run]\nleakage = \"none\"\n[[level]]\nname = \"dram\"\nsize = \"64 MiB\"\n\
                table = \"ddr3-per-bit\"\nlatency_ns = 15\n";
    let hierarchy = parse(text).unwrap();
    let memory = &hierarchy.levels()[0].memories()[0];
    assert_eq!(
        (memory.figures.read_fj, memory.figures.latency_ps),
        (2_240_000, 15_000)
    );
    assert_eq!(memory.figures.leakage_uw, 0);
    assert!(
        memory.source.ends_with("; latency_ns by levels.toml:3"),
        "{}",
        memory.source
    );
    assert_eq!(hierarchy.leakage(), Leakage::None);
    let missing = text.replace("latency_ns = 15\n", "");
    assert_eq!(
        refusal(&missing),
        "levels.toml:5:8: the table `ddr3-per-bit` does not say `latency_ns`: give it with the \
         level, in a levels file"
    );
}

#[test]
fn bad_levels_are_refused_where_they_stand() {
    let level = |rest: &str| format!("[[level]]\nname = \"a\"\nsize = 4096\n{rest}");
    let full = "read_nj = 1\nwrite_nj = 1\nlatency_ns = 1\nleakage_mw = 1\n";
    assert!(parse(&level(full)).is_ok());
    for (text, wanted) in [
        (String::new(), "levels.toml:1:1: a hierarchy needs a level"),
        (
            level("read_nj = 1\n"),
            "levels.toml:1:1: a level needs all of `read_nj`",
        ),
        (
            level(&full.replace("write_nj = 1", "write_nj = -0.5")),
            "levels.toml:5:12: `write_nj` must be a number from 0 to 1000000000, not -0.5",
        ),
        (
            level(&full.replace("latency_ns = 1", "latency_ns = nan")),
            "levels.toml:6:14: `latency_ns` must be a number from 0",
        ),
        (
            level(&full.replace("read_nj = 1", "read_nj = \"1\"")),
            "levels.toml:4:11: invalid type: string",
        ),
        (
            level("raed_nj = 1\n"),
            "levels.toml:4:1: unknown field `raed_nj`",
        ),
        (
            level("table = \"sarm\"\n"),
            "levels.toml:4:9: there is no table `sarm`",
        ),
        (
            level("").replace("4096", "\"16 MiB\""),
            "levels.toml:3:8: 16 MiB is outside of the rows of the table `sram`, which go from \
             4 KiB to 8 MiB",
        ),
        (
            level("").replace("4096", "\"3 KiB..8 KiB\""),
            "levels.toml:3:8: `3 KiB..8 KiB` must go from a power of two",
        ),
        (
            level("").replace("4096", "0"),
            "levels.toml:3:8: a memory level cannot be empty",
        ),
        (
            level("").replace("4096", "1.5"),
            "levels.toml:3:8: data did not match",
        ),
        (
            level("").replace("size = 4096\n", ""),
            "levels.toml:1:1: missing field `size`",
        ),
        (
            format!("{}{}", level(""), level("")),
            "levels.toml:5:8: there are two levels named `a`",
        ),
        (
            (0..5)
                .map(|n| level("").replace('a', &format!("x{n}")).replace("nx", "na"))
                .collect(),
            "levels.toml",
        ),
        (
            format!("[run]\nclock_mhz = 0\n{}", level("")),
            "levels.toml:2:13: `clock_mhz` must be",
        ),
        (
            format!("[run]\nleakage = \"half\"\n{}", level("")),
            "levels.toml:2:11: unknown variant `half`",
        ),
        (
            level("word_bits = 24\n"),
            "levels.toml:4:13: `word_bits` must be a power of two",
        ),
        (
            level(full).replace("4096", "\"4 KiB..8 KiB\""),
            "levels.toml:3:8: figures hold for one size",
        ),
        ("level = 3\n".to_owned(), "levels.toml:1:9: invalid type"),
    ] {
        let error = refusal(&text);
        assert!(error.starts_with(wanted), "{text}\n{error}\n{wanted}");
    }
}

#[test]
fn bad_specifications_are_refused() {
    for (text, wanted) in [
        ("main", "cannot read main"),
        ("=", "must not be empty"),
        ("a=4KiB,b", "`b` has no `=`"),
        ("main=", "is not a size"),
        ("main=8MiB..1MiB", "power of two up to another"),
        ("a=4KiB,a=8KiB", "two levels named `a`"),
        ("1=4KiB", "must not be empty or a number"),
        ("a=4KiB,b=4KiB,c=4KiB,d=4KiB,e=4KiB", "at most 4 levels"),
        ("a=4KiB@sarm", "there is no table `sarm`"),
        ("a=4KiB@absent.toml", "cannot read absent.toml"),
    ] {
        let error = Hierarchy::resolve(text).unwrap_err().to_string();
        assert!(error.contains(wanted), "{text}: {error}");
    }
}

#[test]
fn tables_of_the_users_own() {
    let folder = tempfile::tempdir().unwrap();
    let row = |size: &str, read: &str| {
        format!(
            "[[row]]\nsize = {size}\nread_nj = {read}\nwrite_nj = 2\nlatency_ns = 1\nleakage_mw = 0\n"
        )
    };
    let read = |table: &str| {
        std::fs::write(folder.path().join("mine.toml"), table).unwrap();
        let levels = folder.path().join("levels.toml");
        let text = "[[level]]\nname = \"a\"\nsize = \"2 KiB\"\ntable = \"mine.toml\"\n";
        std::fs::write(&levels, text).unwrap();
        Hierarchy::resolve(levels.to_str().unwrap())
    };
    let good = format!(
        "[table]\nsource = \"data sheet\"\nword_bits = 64\n{}{}",
        row("1024", "1"),
        row("\"4 KiB\"", "4")
    );
    let hierarchy = read(&good).unwrap();
    let level = &hierarchy.levels()[0];
    assert_eq!(level.word_bits(), 64);
    // Half-way between 1 and 4 KiB on a logarithmic axis lies 2 KiB.
    assert_eq!(level.memories()[0].figures.read_fj, 2_000_000);
    let source = &level.memories()[0].source;
    assert!(source.starts_with("interpolated at 2 KiB"), "{source}");
    assert!(source.contains("mine.toml:4 (data sheet)"), "{source}");
    for (table, wanted) in [
        (
            good.replace("read_nj = 4", "read_nj = -4"),
            "mine.toml:12:11: `read_nj` must be",
        ),
        (
            good.replace("latency_ns = 1\n", ""),
            "mine.toml:4:1: missing field `latency_ns`",
        ),
        (
            good.replace("\"4 KiB\"", "1024"),
            "mine.toml:11:8: rows must stand by rising size",
        ),
        (
            good.replace("\"4 KiB\"", "\"4 KiB..8 KiB\""),
            "mine.toml:11:8: a row is for one size",
        ),
        (
            good.replace("source", "sauce"),
            "mine.toml:2:1: unknown field `sauce`",
        ),
        (
            "row = []\n".to_owned(),
            "mine.toml:1:1: a table needs a row",
        ),
        (
            row("4096", "1"),
            "levels.toml:3:8: 2 KiB is outside of the rows",
        ),
    ] {
        let error = match read(&table) {
            Err(EnergyError::File(error)) => error.one_line(),
            other => panic!("{table}: {other:?}"),
        };
        assert!(error.contains(wanted), "{table}\n{error}\n{wanted}");
    }
}
