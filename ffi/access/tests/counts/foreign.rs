//! Programs of other machines, end to end: Arm with its C library, SPARC V8
//! (LEON's instruction set, big-endian) without one.

use std::path::Path;
use std::process::Command;

use crate::support::{
    Counts, by_size, compile, count, options, parse, place, planned, source, tool,
};

/// The counts of the hundred blocks, as the program for this machine says.
fn known(place: &Path) -> Counts {
    let program = compile("known", place);
    let output = tool(
        "gcc",
        Command::new(program)
            .args(["4", "patterns"])
            .env("SAY", "1"),
    );
    let known = parse(&String::from_utf8_lossy(&output.stdout));
    assert_eq!(known.len(), 100);
    known
}

/// What the linker wraps so that `announce.c` sees it.
const WRAPPED: &str = "-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free,\
                       --wrap=memalign,--wrap=aligned_alloc,--wrap=posix_memalign";

fn arm(name: &str, to: &Path, flags: &[&str]) -> String {
    let program = to.join(format!("{name}-arm"));
    let mut gcc = Command::new("arm-linux-gnueabi-gcc");
    gcc.args(["-O1", "-fno-builtin", "-pthread", "-o"])
        .arg(&program);
    gcc.arg(source(&format!("tests/programs/{name}.c")))
        .args(flags);
    tool("gcc-arm-linux-gnueabi libc6-dev-armel-cross", &mut gcc);
    program.to_str().expect("a name").to_owned()
}

#[test]
fn arm_with_its_c_library() {
    let place = place();
    let announce = source("guest/announce.c");
    let announce = announce.to_str().expect("a name");
    let program = arm("known", place.path(), &["-static", announce, WRAPPED]);
    let counted = count(&[&program, "4"], &options(4));
    assert_eq!(counted.trace.provenance.recorder, "qemu-arm");
    let known = known(place.path());
    let counts = by_size(&counted.trace);
    // All that the program does, not the hundred blocks alone.
    assert_eq!(counts.len(), 115);
    for (size, expected) in &known {
        assert_eq!(&counts[size], expected, "block of {size} bytes");
    }
    assert_eq!(counts[&400_012], [8, 0, 32, 0]);
    assert_eq!(counts[&30_003], [0, 2000, 0, 8000]);
}

#[test]
fn sparc_without_one() {
    let place = place();
    let object = place.path().join("bare.o");
    let program = place.path().join("bare");
    let mut clang = Command::new("clang");
    clang.args([
        "--target=sparc-unknown-linux-gnu",
        "-mcpu=v8",
        "-fintegrated-as",
    ]);
    clang.args([
        "-O1",
        "-ffreestanding",
        "-fno-builtin",
        "-fno-pic",
        "-c",
        "-o",
    ]);
    tool(
        "clang",
        clang.arg(&object).arg(source("tests/programs/bare.c")),
    );
    let mut linker = Command::new("sparc64-linux-gnu-ld");
    linker.args(["-m", "elf32_sparc", "-static", "-o"]);
    tool(
        "binutils-sparc64-linux-gnu",
        linker.arg(&program).arg(&object),
    );
    let counted = count(&[program.to_str().expect("a name")], &options(4));
    assert_eq!(counted.trace.provenance.recorder, "qemu-sparc");
    assert_eq!(counted.ending, metes_trace::record::Ending::Exit(0));
    assert_eq!(by_size(&counted.trace), known(place.path()));
}

#[test]
fn what_cannot_announce_is_refused() {
    let place = place();
    let dynamic = arm("loops", place.path(), &[]);
    let error = planned(&[&dynamic])
        .expect_err("nothing announces")
        .to_string();
    assert!(
        error.contains("another machine (arm)") && error.contains("announce.c"),
        "{error}"
    );

    let silent = arm("loops", place.path(), &["-static"]);
    let plan = planned(&[&silent]).expect("it may announce");
    let error = metes_trace::count_accesses(&plan, &options(4)).expect_err("it does not");
    assert!(error.to_string().contains("announced no block"), "{error}");
}
