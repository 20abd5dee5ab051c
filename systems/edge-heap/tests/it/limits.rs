//! What requests cost: measured under traffic, and bounded by the longest path through the code.

use metes_edge_heap::adversary::{Search, attack, replay};
use metes_edge_heap::fuel::{Allocator, Guest};
use metes_edge_heap::longest::{Code, Given, Unbounded};
use metes_edge_heap::traffic::{Most, churn, comb, first_request};

use crate::support::{allocator_of_c, guest, recorded};

/// Operators of an allocation at the most.
const ALLOCATE: u64 = 350;
/// Of a free.
const FREE: u64 = 240;
/// Bytes of code of the C library's malloc, free, calloc and realloc, with all that they call.
const CODE: usize = 4096;

/// The longest paths of an allocation and a free. What takes possession of the memory is once in a life and not
/// counted, nor is what places a block at more than the target's own alignment, which these functions enter for
/// larger alignments alone.
fn bounds(wasm: &[u8], allocate: &str, free: &str) -> Result<[u64; 2], Unbounded> {
    let code = Code::new(wasm).expect("a module");
    let mut given = Given::default();
    for once in ["settle", "find_aligned"] {
        for function in code.named(once) {
            given.functions.insert(function, 0);
        }
    }
    let of = |name| code.longest(code.exported(name).expect("an export"), &given);
    Ok([of(allocate)?, of(free)?])
}

/// The most of all traffic, after the first request.
fn measured(wasm: &[u8]) -> Most {
    let mut most = Most::default();
    for seed in 1..=3 {
        let mut guest = Guest::new(wasm).expect("a module that runs");
        first_request(&mut guest).expect("a request");
        let of_chance = churn(&mut guest, seed, 30_000, 400, true).expect("churn");
        most = most.max(of_chance);
        assert_eq!(guest.grown(), 0, "the memory grew");
    }
    for (holes, size, step) in [(1000, 16, 4), (2000, 100, 1), (300, 2000, 16)] {
        let mut guest = Guest::new(wasm).expect("a module that runs");
        first_request(&mut guest).expect("a request");
        most = most.max(comb(&mut guest, holes, size, step).expect("a comb"));
        assert_eq!(guest.grown(), 0, "the memory grew");
    }
    assert_eq!(most.refused, 0);
    most.max(of_adversaries(wasm)).max(of_programs(wasm))
}

/// The most of adversaries, who look at blocks and operators and go on from what came furthest.
fn of_adversaries(wasm: &[u8]) -> Most {
    let allocator = Allocator::new(wasm).expect("a module that runs");
    let found = attack(&allocator, &Search::default()).expect("attacks");
    assert_eq!((found.attacks, found.grown), (41, 0), "{found:?}");
    assert!(found.requests > 100_000, "{found:?}");
    Most {
        allocate: found.allocate.operators,
        free: found.free.operators,
        ..Most::default()
    }
}

/// The most of what programs were recorded to ask.
fn of_programs(wasm: &[u8]) -> Most {
    let mut most = Most::default();
    for (name, events) in recorded() {
        let mut guest = Guest::new(wasm).expect("a module that runs");
        first_request(&mut guest).expect("a request");
        let of_program = replay(&mut guest, events).expect("a replay");
        assert_eq!((of_program.refused, guest.grown()), (0, 0), "{name}");
        assert!(of_program.calls > 100, "{name}");
        most = most.max(of_program);
    }
    most
}

/// Measured within the bound, and the bound no idle one; both within the limits.
fn hold(name: &str, wasm: &[u8], allocate: &str, free: &str) {
    let most = measured(wasm);
    let [allocation, release] = bounds(wasm, allocate, free).expect("no loop on the way");
    for (what, measured, bound, limit) in [
        ("an allocation", most.allocate, allocation, ALLOCATE),
        ("a free", most.free, release, FREE),
    ] {
        assert!(
            measured <= bound,
            "{name}: {what} took {measured}, bounded by {bound}"
        );
        assert!(
            bound - measured <= bound / 8,
            "{name}: {what} took {measured} of {bound}"
        );
        assert!(bound <= limit, "{name}: {what} may take {bound}");
    }
}

#[test]
fn rust_on_a_static_pool() {
    for name in ["tlsf", "half_fit"] {
        let wasm = guest(name, false);
        hold(name, &wasm, "allocate", "release");
        let code = Code::new(&wasm).expect("a module");
        let whole = [
            code.exported("allocate"),
            code.exported("release"),
            code.exported("resize"),
        ];
        let whole = code.reached(&whole.map(|function| function.expect("an export")), &[]);
        assert!(!code.grows(&whole), "{name} has memory.grow");
    }
}

#[test]
fn c_on_the_library() {
    let wasm = allocator_of_c(true);
    hold("C", &wasm, "malloc", "free");
    let code = Code::new(&wasm).expect("a module");
    let roots = ["malloc", "free", "calloc", "realloc"];
    let roots = roots.map(|name| code.exported(name).expect("an export"));
    let mut copying = code.named("memcpy");
    copying.extend(code.named("memset"));
    copying.extend(code.named("memmove"));
    let own = code.reached(&roots, &copying);
    assert!(!code.grows(&own), "the library has memory.grow");
    assert!(
        code.bytes(&own) <= CODE,
        "{} bytes of code",
        code.bytes(&own)
    );
}

/// What is found depends on nothing but what is asked, and an allocator that searches is found out.
#[test]
fn adversaries_find_the_same_again_and_more_where_there_is_more() {
    let few = Search {
        attacks: 16,
        requests: 5_000,
        ..Search::default()
    };
    let [ours, theirs] = [true, false].map(|ours| {
        let wasm = allocator_of_c(ours);
        let found = || attack(&Allocator::new(&wasm).expect("a module"), &few).expect("attacks");
        let once = found();
        assert_eq!(once, found());
        once
    });
    assert!(theirs.allocate.operators > ALLOCATE, "{theirs:?}");
    assert!(theirs.allocate.operators > ours.allocate.operators);
    assert!(theirs.free.operators > ours.free.operators);
}

#[test]
fn loops_have_no_longest_path() {
    let wasm = allocator_of_c(false);
    assert!(matches!(
        bounds(&wasm, "malloc", "free"),
        Err(Unbounded::Loop { .. })
    ));
}

#[test]
fn what_is_no_module_is_refused() {
    for bytes in [&b""[..], b"\0asm", b"\x7fELF", b"\0asm\x01\0\0\0\x0a\x7f"] {
        assert!(Guest::new(bytes).is_err());
        // Nothing at all is a module without functions to whoever reads only.
        assert!(bytes.is_empty() || Code::new(bytes).is_err());
    }
}
