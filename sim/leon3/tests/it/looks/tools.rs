//! Profile and coverage beside a recount of the trace, binutils, and a program whose calls are known.

use std::collections::BTreeMap;
use std::process::Command;

use metes_leon3::tools::{Coverage, Depth, Lines, Point, Profile, Trace, Watch, Weight};
use metes_leon3::{Bus, Configuration, Core, Image, Machine, Model, Observer, Stop};
use tempfile::{NamedTempFile, TempPath};

use super::image;

/// The program `program.c`, compiled with line tables: a file that is gone when it is dropped, and what it holds.
fn program() -> (TempPath, Vec<u8>) {
    // Tests run side by side: each has a file of its own.
    let out = NamedTempFile::new().unwrap().into_temp_path();
    let flags = "-m32 -mcpu=leon3 -O1 -foptimize-sibling-calls -g -ffreestanding -nostdlib -static -fno-pic -no-pie -Wl,-Ttext=0x40000000 \
                 -Wl,-N -Wl,--build-id=none -fno-stack-protector";
    let compiled = Command::new("sparc64-linux-gnu-gcc")
        .args(flags.split_whitespace())
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/it/looks/program.c"
        ))
        .arg("-o")
        .arg(&out)
        .status();
    assert!(
        compiled.is_ok_and(|status| status.success()),
        "sparc64-linux-gnu-gcc does not compile the program; run scripts/setup"
    );
    let bytes = std::fs::read(&out).unwrap();
    (out, bytes)
}

fn run<O: metes_leon3::Observer>(
    configuration: &Configuration,
    image: &Image,
    observer: &mut O,
) -> Machine {
    let mut machine = Machine::with_image(configuration, image).unwrap();
    // In portions, as a user would.
    for _ in 0..4 {
        machine.run(100_000, observer);
    }
    machine
}

/// How often each address stands in the trace of `core`.
fn recount(trace: &[u8], core: usize) -> BTreeMap<u32, u64> {
    let mut counts = BTreeMap::new();
    let text = std::str::from_utf8(trace).unwrap();
    for line in text.lines() {
        let mut fields = line.split(' ');
        if usize::from_str_radix(fields.next().unwrap(), 16) == Ok(core) {
            let address = u32::from_str_radix(fields.next().unwrap(), 16).unwrap();
            *counts.entry(address).or_default() += 1;
        }
    }
    counts
}

#[test]
fn own_instructions_and_coverage_are_those_of_the_trace() {
    for (name, cores) in [
        ("traps", 1),
        ("interrupts", 1),
        ("casa", 4),
        ("deep-short", 1),
        ("heap", 1),
    ] {
        let image = image(name);
        let configuration = Configuration {
            cores,
            model: Model::Caches,
            ..Configuration::default()
        };
        let mut all = (
            Trace::new(Vec::new(), false),
            (Profile::new(&image), Coverage::new(&image)),
        );
        let machine = run(&configuration, &image, &mut all);
        let (trace, (mut profile, coverage)) = all;
        profile.settle(machine.cores());
        let trace = trace.finish().unwrap();
        let mut executed = BTreeMap::<u32, u64>::new();
        for core in 0..cores {
            let mut own = BTreeMap::<String, u64>::new();
            for (address, count) in recount(&trace, core) {
                let name = image
                    .symbol_at(address)
                    .map_or("[unknown]", |symbol| &symbol.name);
                *own.entry(name.to_owned()).or_default() += count;
                *executed.entry(address).or_default() += count;
            }
            let rows = profile
                .flat(core)
                .into_iter()
                .filter(|row| row.own_instructions > 0);
            let rows: BTreeMap<_, _> = rows
                .map(|row| (row.function, row.own_instructions))
                .collect();
            assert_eq!(rows, own, "{name}, core {core}");
            assert!(
                !rows.contains_key("[unknown]"),
                "labels of the assembler are symbols: {rows:?}"
            );
            for (weight, all) in [
                (Weight::Instructions, machine.cores()[core].instructions),
                (Weight::Cycles, machine.cores()[core].cycles),
            ] {
                let folded = profile.folded(core, weight);
                let sum: u64 = folded
                    .lines()
                    .map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap())
                    .sum();
                assert!(
                    sum <= all && (sum == all || core > 0),
                    "{name}, core {core}: {sum} of {all}"
                );
            }
        }
        let counted: BTreeMap<_, _> = coverage
            .executed()
            .map(|(address, count)| (address, count.executed))
            .collect();
        assert_eq!(counted, executed, "{name}");
    }
}

#[test]
fn calls_of_a_known_program_are_found() {
    let (path, bytes) = program();
    let image = Image::read(&bytes).unwrap();
    let mut all = (Profile::new(&image), Coverage::new(&image));
    let machine = run(&Configuration::default(), &image, &mut all);
    let (mut profile, coverage) = all;
    profile.settle(machine.cores());
    let rows = profile.flat(0);
    let calls = |name: &str| {
        rows.iter()
            .find(|row| row.function == name)
            .map_or(0, |row| row.calls)
    };
    let found = ["_start", "work", "loop", "leaf", "tail", "last", "never"].map(calls);
    assert_eq!(found, [1, 1, 1, 27, 2, 2, 0], "{}", profile.table(0));
    let folded = profile.folded(0, Weight::Instructions);
    let stacks: Vec<&str> = folded
        .lines()
        .map(|line| line.rsplit_once(' ').unwrap().0)
        .collect();
    let must = [
        "_start",
        "_start;work",
        "_start;work;last",
        "_start;work;loop",
        "_start;work;loop;leaf",
        "_start;work;tail",
        "_start;work;tail;leaf",
    ];
    for stack in must {
        assert!(stacks.contains(&stack), "{stack} is not in {stacks:?}");
    }
    lines_are_those_of_binutils(&path, &bytes, &image, &coverage);
}

fn lines_are_those_of_binutils(
    path: &std::path::Path,
    bytes: &[u8],
    image: &Image,
    coverage: &Coverage,
) {
    let lines = Lines::read(bytes).unwrap();
    assert!(!lines.is_empty());
    let text = image.symbols().iter().filter(|symbol| symbol.function);
    let addresses: Vec<u32> = text
        .flat_map(|symbol| (symbol.address..symbol.address + symbol.size).step_by(4))
        .collect();
    let said = Command::new("sparc64-linux-gnu-addr2line")
        .arg("-e")
        .arg(path)
        .args(addresses.iter().map(|address| format!("{address:#x}")))
        .output()
        .unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    for (address, line) in addresses.iter().zip(said.lines()) {
        let line = line.split(" (").next().unwrap();
        let own = lines
            .at(*address)
            .map_or("??:?".to_owned(), |(file, line)| format!("{file}:{line}"));
        assert_eq!(own, line, "{address:#x}");
    }
    let lcov = coverage.lcov(&lines, "program.elf");
    for must in [
        "FNDA:27,leaf",
        "FNDA:0,never",
        "FNDA:2,last",
        "FNDA:1,_start",
    ] {
        assert!(lcov.contains(must), "{must} is not in\n{lcov}");
    }
    let sums = |key: &str| -> u64 {
        let values = lcov.lines().filter_map(|line| line.strip_prefix(key));
        values.map(|value| value.parse::<u64>().unwrap()).sum()
    };
    let totals = coverage.totals(&lines);
    let told =
        [totals.functions, totals.lines, totals.branches].map(|part| (part.all, part.executed));
    assert_eq!(
        told,
        [("FNF:", "FNH:"), ("LF:", "LH:"), ("BRF:", "BRH:")]
            .map(|(all, hit)| (sums(all), sums(hit)))
    );
    assert!(totals.lines.executed < totals.lines.all, "{totals:?}");
    let source = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/it/looks/program.c"
    ))
    .unwrap();
    let line_of = |text: &str| 1 + source.lines().position(|line| line.contains(text)).unwrap();
    assert!(
        lcov.contains(&format!("\nDA:{},27\n", line_of("return x * 3"))),
        "{lcov}"
    );
    assert!(
        lcov.contains(&format!("\nDA:{},0\n", line_of("return x - 1"))),
        "{lcov}"
    );
    assert!(
        lcov.contains(&format!("\nFN:{},loop\n", 1 + line_of("int loop("))),
        "{lcov}"
    );
    let branch = line_of("if (i % 4 == 3)");
    let taken: Vec<_> = lcov
        .lines()
        .filter(|line| line.starts_with(&format!("BRDA:{branch},")))
        .collect();
    assert!(
        taken.iter().any(|line| line.ends_with(",25"))
            && taken.iter().any(|line| line.ends_with(",75")),
        "{taken:?}"
    );
}

#[test]
fn watchpoints_tell_what_was_there_and_pause() {
    // mov 5, %g2; sethi %hi(0x40000400), %g1; st %g2, [%g1 + 0x10]; stb %g2, [%g1 + 0x10]; ld [%g1 + 0x10], %g3; ta 0
    let words = [
        0x8410_2005,
        0x0310_0001,
        0xc420_6010,
        0xc428_6010,
        0xc600_6010,
        0x91d0_2000,
    ];
    let image = Image::of_words(0x4000_0000, &words);
    let texts = [
        "w:0x40000410",
        "r:0x40000412+1",
        "c:%g3",
        "w:0x40000410=5",
        "w:0x40000420",
        "x:0x40000010",
    ];
    let points = texts.map(|text| Point::parse(text, &image).unwrap());
    let mut watch = Watch::new(points.to_vec());
    let mut machine = Machine::with_image(&Configuration::default(), &image).unwrap();
    let mut hits = Vec::new();
    let mut pauses = Vec::new();
    while machine.run(100, &mut watch) == (Stop::Observer { core: 0 }) {
        pauses.push(machine.cores()[0].pc);
        hits.extend(watch.hits());
    }
    assert_eq!(pauses, [0x4000_000c, 0x4000_0010, 0x4000_0014]);
    let seen: Vec<_> = hits
        .iter()
        .map(|hit| (hit.point, hit.pc & 0xff, hit.old, hit.new))
        .collect();
    assert_eq!(
        seen,
        [
            (0, 0x08, Some(0), 5),
            (3, 0x08, Some(0), 5),
            (0, 0x0c, Some(0), 5),
            (3, 0x0c, Some(0), 5),
            (5, 0x10, None, 0x4000_0010),
            (1, 0x10, None, 0x0500_0005),
            (2, 0x10, Some(0), 0x0500_0005),
        ]
    );
    assert_eq!(
        hits[0].line(&image),
        "watchpoint 0: core 0 at 0x40000008 (st %g2, [ %g1 + 0x10 ]), cycle 4, writes 4 bytes at 0x40000410: 0x0 -> 0x5"
    );
    for text in [
        "",
        "w",
        "w:nobody",
        "q:0",
        "c:%q9",
        "c:%g8",
        "w:0x40000000+0",
        "w:0xffffffff+2",
        "w:1=x",
        "x:1=5",
        "x:nobody",
    ] {
        assert!(Point::parse(text, &image).is_err(), "{text}");
    }
}

/// The lowest stack pointer, beside a recount of what it was at each instruction.
#[test]
fn depth_is_that_of_the_lowest_stack_pointer() {
    let (path, bytes) = program();
    drop(path);
    let image = Image::read(&bytes).unwrap();
    let mut all = (Depth::new(&image), Lowest(u32::MAX));
    run(&Configuration::default(), &image, &mut all);
    let stacks = all.0.stacks();
    let own: Vec<_> = stacks
        .iter()
        .filter(|stack| stack.top <= 0x4010_0000)
        .collect();
    let [stack] = own[..] else {
        panic!("{stacks:?}")
    };
    assert_eq!((stack.top, stack.low), (0x4010_0000, all.1.0));
    assert_eq!(stack.chain[..2], ["_start", "work"]);
    assert_eq!(all.0.functions()[0].used, stack.used());
}

/// The lowest stack pointer of a program without traps, from where it sets one.
struct Lowest(u32);

impl Observer for Lowest {
    fn before(&mut self, core: &Core, _bus: &Bus) -> bool {
        let pointer = core.registers.get(14);
        if pointer > 0x4000_0000 && core.pc > 0x4000_0000 {
            self.0 = self.0.min(pointer);
        }
        false
    }
}
