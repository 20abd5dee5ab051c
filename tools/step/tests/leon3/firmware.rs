//! Compiled code: bounds beside what calls take, with the handlers of window traps of the images.

use std::process::Command;
use std::sync::LazyLock;

use metes_leon3::{Image, Machine, Model};
use metes_random::Random;
use metes_step::longest_on_leon3;
use metes_step::sparc::{Bound, Options, Unbounded, WindowTraps};

use crate::machine::{self, Count};
use crate::words::BASE;

/// `tlsf.c`, with the start of the simulator's images.
static IMAGE: LazyLock<Image> = LazyLock::new(|| {
    let here = env!("CARGO_MANIFEST_DIR");
    let images = format!("{here}/../../sim/leon3/images");
    let folder = tempfile::tempdir().expect("a folder");
    let elf = folder.path().join("tlsf.elf");
    let mut compiler = Command::new("sparc64-linux-gnu-gcc");
    compiler.args(
        "-m32 -mcpu=leon3 -O2 -std=gnu11 -ffreestanding -fno-builtin -nostdlib -static".split(' '),
    );
    compiler.args(
        "-fno-pic -fno-pie -no-pie -fno-stack-protector -fno-asynchronous-unwind-tables".split(' '),
    );
    compiler.args(
        "-fno-tree-loop-distribute-patterns -fno-strict-aliasing -Wl,--build-id=none".split(' '),
    );
    compiler.args("-Wl,-z,norelro -Wl,-z,noexecstack -Wl,--no-warn-rwx-segments".split(' '));
    compiler
        .arg(format!("-I{images}"))
        .arg(format!("-Wl,-T,{images}/image.ld"));
    compiler
        .args(["-x", "assembler-with-cpp"])
        .arg(format!("{images}/start.s"));
    compiler
        .args(["-x", "c"])
        .arg(format!("{images}/leon3.c"))
        .arg(format!("{here}/tests/leon3/tlsf.c"));
    let done = compiler.arg("-o").arg(&elf).output();
    let done = done.expect("sparc64-linux-gnu-gcc is missing; run scripts/setup");
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    Image::read(&std::fs::read(elf).expect("the image")).expect("an image")
});

fn address(name: &str) -> u32 {
    Options::address(&IMAGE, name).unwrap_or_else(|error| panic!("{error}"))
}

fn options() -> Options {
    Options {
        window_traps: WindowTraps::Table(BASE),
        ..Options::default()
    }
}

fn bound(name: &str) -> Result<Bound, Unbounded> {
    longest_on_leon3(&IMAGE, address(name), &options())
}

/// Compares calls with a bound: a call must not exceed it, however many windows are free.
struct Compared {
    bound: Bound,
    machines: [Machine; 2],
    free: usize,
    /// The largest counts with hits.
    largest: Count,
}

impl Compared {
    fn new(bound: Bound) -> Compared {
        Compared {
            bound,
            machines: [Model::Flat, Model::Caches].map(|model| machine::started(&IMAGE, model)),
            free: 0,
            largest: Count::default(),
        }
    }

    fn call(&mut self, name: &str, arguments: &[u32]) -> u32 {
        let bound = self.bound.uninterrupted.expect("the image has handlers");
        let trapped = self.bound.trapped.expect("the image has handlers");
        let function = address(name);
        let [flat, caches] = &mut self.machines;
        machine::leave_free(flat, self.free);
        machine::leave_free(caches, self.free);
        self.free = (self.free + 1) % 7;
        let (hits, result) = machine::call(flat, function, arguments);
        let (misses, _) = machine::call(caches, function, arguments);
        assert!(
            hits.instructions <= bound.instructions,
            "{name}: {hits:?}, {bound:?}"
        );
        assert!(hits.cycles <= bound.cycles, "{name}: {hits:?}, {bound:?}");
        assert!(
            misses.cycles <= bound.cycles_with_misses,
            "{name}: {misses:?}, {bound:?}"
        );
        assert!(bound.instructions <= trapped.instructions);
        self.largest = self.largest.max(hits);
        result
    }
}

#[test]
fn every_call_of_a_heap_stays_within_its_bounds() {
    let [malloc, free] = ["tlsf_malloc", "tlsf_free"].map(|name| bound(name).unwrap());
    let (most_malloc, most_free) = (malloc.uninterrupted.unwrap(), free.uninterrupted.unwrap());
    let mut malloc = Compared::new(malloc);
    let mut free = Compared::new(free);
    // One heap, on the machines of `malloc`; those of `free` change places with them for a call.
    for machine in &mut malloc.machines {
        machine::call(machine, address("clear"), &[]);
    }
    let mut random = Random::new(7);
    let mut held = Vec::new();
    let rounds = if cfg!(debug_assertions) { 300 } else { 4000 };
    for _ in 0..rounds {
        if held.is_empty() || random.below(16) < 9 {
            let class = random.below(13);
            let size = random.below(1 << class) as u32;
            let block = malloc.call("tlsf_malloc", &[size]);
            held.extend((block != 0).then_some(block));
        } else {
            let block = held.swap_remove(random.below(held.len() as u64) as usize);
            std::mem::swap(&mut malloc.machines, &mut free.machines);
            free.call("tlsf_free", &[block]);
            std::mem::swap(&mut malloc.machines, &mut free.machines);
        }
    }
    let part = |count: Count, most: u64| count.instructions as f64 / most as f64;
    assert!(part(malloc.largest, most_malloc.instructions) > 0.7);
    assert!(part(free.largest, most_free.instructions) > 0.7);
}

#[test]
fn a_chain_of_calls_meets_its_bound_when_no_window_is_free() {
    for (name, windows) in [("chain3", 3), ("chain5", 5), ("chain10", 10)] {
        let bound = bound(name).unwrap();
        assert_eq!(bound.windows, windows, "{name}");
        let most = bound.uninterrupted.unwrap();
        let mut compared = Compared::new(bound);
        for argument in 0..14 {
            compared.call(name, &[argument]);
        }
        let largest = compared.largest;
        if windows < 7 {
            assert_eq!(
                (largest.instructions, largest.cycles),
                (most.instructions, most.cycles),
                "{name}"
            );
        } else {
            // All overflow but not all underflow: the oldest windows stay on the stack.
            assert!(largest.instructions < most.instructions);
        }
    }
}

#[test]
fn other_shapes_stay_within_their_bounds() {
    let mut options = options();
    let head = match bound("bits") {
        Err(Unbounded::Loop(place)) => place,
        other => panic!("{other:?}"),
    };
    assert_eq!(head.symbol.as_ref().map(|it| it.0.as_str()), Some("bits"));
    options.loops.insert(head.address, 32);
    let shapes = ["bits", "chains", "uses_pair", "last"];
    let mut random = Random::new(3);
    for name in shapes {
        let bound = longest_on_leon3(&IMAGE, address(name), &options);
        let bound = bound.unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut compared = Compared::new(bound);
        for _ in 0..200 {
            let arguments = [random.next() as u32, random.next() as u32];
            compared.call(name, &arguments);
        }
    }
    let bound = longest_on_leon3(&IMAGE, address("bits"), &options).unwrap();
    let most = bound.untrapped;
    let mut compared = Compared::new(bound);
    compared.call("bits", &[u32::MAX]);
    let largest = compared.largest;
    assert_eq!(
        (largest.instructions, largest.cycles),
        (most.instructions, most.cycles)
    );
}

#[test]
fn what_has_no_bound_is_named_by_its_symbol() {
    let error = bound("factorial").expect_err("it is recursive");
    assert!(error.to_string().contains("factorial (0x4"), "{error}");
    let error = bound("through").expect_err("it calls through a pointer");
    assert!(error.to_string().contains("through+"), "{error}");
    let at = match error {
        Unbounded::Indirect(place) => place.address,
        other => panic!("{other}"),
    };
    let mut options = options();
    options
        .targets
        .insert(at, vec![address("chain0"), address("chain2")]);
    let bound = longest_on_leon3(&IMAGE, address("through"), &options).unwrap();
    let mut compared = Compared::new(bound);
    for name in ["chain0", "chain2"] {
        compared.call("through", &[address(name), 5]);
    }
}

#[test]
fn places_are_named_by_symbols() {
    let malloc = address("tlsf_malloc");
    for (text, is) in [
        ("tlsf_malloc+0x10", malloc + 16),
        ("tlsf_malloc+8", malloc + 8),
        ("0x40000010", BASE + 16),
    ] {
        assert_eq!(Options::address(&IMAGE, text), Ok(is));
    }
    for text in [
        "nothing",
        "nothing+4",
        "tlsf_malloc+x",
        "tlsf_malloc+0xffffffff",
        "",
    ] {
        let error = Options::address(&IMAGE, text).expect_err("no place");
        assert!(error.to_string().contains(&format!("`{text}`")), "{error}");
    }
}
