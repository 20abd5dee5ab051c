//! gdb itself against the stub, and peers that do not behave.
//!
//! Invariant: each conversation ends, by a time limit if not by itself, and what is asserted is what gdb printed.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use metes_leon3::gdb::{self, NotServed, Options, Parting};
use metes_leon3::{Configuration, End, Image, Machine, Stop};
use metes_random::Random;

use crate::sleep::Ticker;
/// How long gdb may take.
const PATIENCE: Duration = Duration::from_secs(60);
const BASE: u32 = 0x4000_0000;
/// `ta 0`, with traps off: the end.
const END: u32 = 0x91d0_2000;
const NOP: u32 = 0x0100_0000;

/// Builds the image `name` and gives its file.
fn image(name: &str) -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("images/build");
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("images");
    let status = Command::new(&script).arg(&out).arg(name).status();
    let status =
        status.unwrap_or_else(|error| panic!("{} does not run: {error}", script.display()));
    assert!(status.success(), "image {name} is not built: {status}");
    out.join(format!("{name}.elf"))
}

fn machine(path: &Path, cores: usize) -> Machine {
    let image = Image::read(&std::fs::read(path).expect("it was built")).expect("an image");
    let configuration = Configuration {
        cores,
        ..Configuration::default()
    };
    Machine::with_image(&configuration, &image).expect("it fits")
}

fn machine_of(words: &[u32]) -> Machine {
    let configuration = Configuration::default();
    Machine::with_image(&configuration, &Image::of_words(BASE, words)).expect("it fits")
}

/// What came of a session.
struct Outcome {
    parting: Result<Parting, NotServed>,
    uart: String,
}

/// Serves `machine` while `peer` talks to it.
fn served<T>(machine: &mut Machine, peer: impl FnOnce(SocketAddr) -> T) -> (T, Outcome) {
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        let server = scope.spawn(move || {
            let mut uart = Vec::new();
            let before = machine.configuration().clone();
            let options = Options {
                address: SocketAddr::from(([127, 0, 0, 1], 0)),
                listening: Box::new(move |address| sender.send(address).expect("somebody waits")),
                uart: Box::new(&mut uart),
                reset: Some(Box::new(move || Machine::new(&before).expect("as before"))),
            };
            let parting = gdb::serve(machine, options);
            (parting, uart)
        });
        let address = receiver
            .recv_timeout(PATIENCE)
            .expect("a place to connect to");
        let said = peer(address);
        // A peer that never came is not waited for.
        drop(TcpStream::connect(address));
        let (parting, uart) = server.join().expect("the stub does not panic");
        let uart = String::from_utf8(uart).expect("the images print ASCII");
        (said, Outcome { parting, uart })
    })
}

/// Lets gdb do `commands` with `machine`; gives what it printed.
fn gdb(machine: &mut Machine, image: Option<&Path>, commands: &[&str]) -> (String, Outcome) {
    served(machine, |address| {
        let mut gdb = Command::new("gdb-multiarch");
        gdb.args([
            "-nx",
            "-batch",
            "-ex",
            "set confirm off",
            "-ex",
            "set pagination off",
        ]);
        // What an image would say.
        gdb.args([
            "-ex",
            "set width 0",
            "-ex",
            "set architecture sparc",
            "-ex",
            "set endian big",
        ]);
        gdb.args(["-ex", &format!("target remote {address}")]);
        // Should it crash, what it leaves behind lies among what is built.
        gdb.current_dir(env!("CARGO_TARGET_TMPDIR"));
        for command in commands {
            gdb.args(["-ex", command]);
        }
        gdb.args(image);
        run(&mut gdb)
    })
}

/// Runs gdb to its end, within the time it has.
fn run(gdb: &mut Command) -> String {
    gdb.stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = match gdb.spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            panic!("gdb-multiarch is missing; install it with: scripts/setup")
        }
        Err(error) => panic!("gdb-multiarch does not run: {error}"),
    };
    let (mut out, mut err) = (
        child.stdout.take().expect("piped"),
        child.stderr.take().expect("piped"),
    );
    std::thread::scope(|scope| {
        let err = scope.spawn(move || {
            let mut text = String::new();
            err.read_to_string(&mut text).map(|_| text)
        });
        let out = scope.spawn(move || {
            let mut text = String::new();
            out.read_to_string(&mut text).map(|_| text)
        });
        let begin = Instant::now();
        while child.try_wait().expect("a child").is_none() {
            if begin.elapsed() > PATIENCE {
                child.kill().expect("a child");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let text = out.join().expect("no panic").expect("text")
            + &err.join().expect("no panic").expect("text");
        assert!(
            begin.elapsed() < PATIENCE,
            "gdb took too long; it said:\n{text}"
        );
        text
    })
}

/// The lines of `text` have all of `parts`, in their order.
#[track_caller]
fn has(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        match rest.split_once(part) {
            Some((_, behind)) => rest = behind,
            None => panic!("gdb did not say '{part}' where it was expected; it said:\n{text}"),
        }
    }
}

/// What `machine` prints and how long it takes, with nobody who looks.
fn alone(machine: &mut Machine) -> (String, u64, u64) {
    let stop = machine.run(1 << 40, &mut ());
    assert_eq!(stop, Stop::End(End::Halt { core: 0 }));
    let uart = String::from_utf8(machine.printed(0)).expect("the images print ASCII");
    (uart, machine.cycles(), machine.instructions())
}

/// A function by name, callers in windows and on the stack, the way back out of one.
#[test]
fn gdb_stops_in_a_function_and_knows_its_callers() {
    let path = image("deep-short");
    let mut machine = machine(&path, 1);
    let (said, outcome) = gdb(
        &mut machine,
        Some(&path),
        &[
            "break descend if $i0 > 20",
            "continue",
            "printf \"depth %d\\n\", $i0",
            "delete",
            "hbreak descend if $i0 == 0",
            "continue",
            "backtrace",
            "up",
            "printf \"caller's depth %d\\n\", $i0",
            "delete",
            "finish",
            "printf \"depth %d\\n\", $i0",
            "info registers pc npc",
            "continue",
        ],
    );
    has(
        &said,
        &[
            "Breakpoint 1, 0x",
            " in descend ()",
            "depth 2",
            "Breakpoint 2, 0x",
            "#0  0x",
            " in main ()",
            "caller's depth 1\n",
            "depth 2\n",
            "<descend+",
            "[Inferior 1 (process 1) exited normally]",
        ],
    );
    let depth = said.split_once("\ndepth ").expect("a depth").1;
    let depth: usize = depth
        .lines()
        .next()
        .expect("a line")
        .parse()
        .expect("a number");
    let frames = said
        .lines()
        .filter(|line| line.starts_with('#') && line.ends_with("in descend ()"));
    assert_eq!(
        frames.count(),
        depth + 1 + 1,
        "each frame, and that of `up`:\n{said}"
    );
    assert_eq!(
        outcome.parting.expect("no error"),
        Parting::Ended { signal: 0 }
    );
    let mut other = self::machine(&path, 1);
    let other = alone(&mut other);
    let mine = (outcome.uart, machine.cycles(), machine.instructions());
    assert_eq!(mine, other, "a debugger changes nothing");
}

/// The condition by which the next `save` overflows.
const OVERFLOWS: &str = "($wim >> (($psr - 1) & 7)) & 1";

#[test]
fn a_step_passes_the_handlers_of_windows() {
    let path = image("deep-short");
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("steps");
    // The trap table and the handlers of windows come before the first function.
    let text = "set $left = 3000\nset $in = 0\nwhile $left > 0\nset $left = $left - 1\nstepi\n\
                if $pc < (unsigned) &boot\nset $in = $in + 1\nend\nend\nprintf \"in handlers %d\\n\", $in\n";
    std::fs::write(&script, text).expect("a file");
    let steps = format!("source {}", script.display());
    let condition = format!("break *descend if {OVERFLOWS}");
    let commands = [
        condition.as_str(),
        "continue",
        "delete",
        "x/i $pc",
        "stepi",
        "printf \"behind at %d\\n\", (int)$pc - (int)&descend",
        &steps,
        "continue",
    ];
    let mut machine = machine(&path, 1);
    let (said, outcome) = gdb(&mut machine, Some(&path), &commands);
    has(
        &said,
        &[
            "<descend>:\tsave",
            "behind at 4\n",
            "in handlers 0\n",
            "exited normally",
        ],
    );
    assert_eq!(
        outcome.parting.expect("no error"),
        Parting::Ended { signal: 0 }
    );
    let mine = (outcome.uart, machine.cycles(), machine.instructions());
    assert_eq!(mine, alone(&mut self::machine(&path, 1)));
}

#[test]
fn gdb_watches_memory() {
    let path = image("deep-short");
    let mut machine = machine(&path, 1);
    let (said, outcome) = gdb(
        &mut machine,
        Some(&path),
        &[
            "watch *(unsigned *) &ticks",
            "continue",
            "continue",
            "delete",
            "rwatch *(unsigned *) &rounds",
            "continue",
            "delete",
            "awatch *(unsigned *) &ticks",
            "continue",
            "delete",
            "continue",
        ],
    );
    has(
        &said,
        &[
            "Hardware watchpoint 1: *(unsigned *) &ticks",
            "Old value = 0\nNew value = 1\n",
            " in count ()",
            "Old value = 1\nNew value = 2\n",
            "Hardware read watchpoint 2: *(unsigned *) &rounds",
            "Value = 200\n",
            " in main ()",
            "Hardware access (read/write) watchpoint 3: *(unsigned *) &ticks",
            "Value = 2\n",
            " in count ()",
            "exited normally",
        ],
    );
    assert_eq!(outcome.uart, alone(&mut self::machine(&path, 1)).0);
}

#[test]
fn gdb_writes_registers_and_memory() {
    let path = image("deep-short");
    let mut machine = machine(&path, 1);
    let (said, outcome) = gdb(
        &mut machine,
        Some(&path),
        &[
            "tbreak main",
            "continue",
            "set var *(unsigned *) &rounds = 3",
            "set $g7 = 0x1234",
            "set $f3 = 1.5",
            "print $g7",
            "print $f3",
            "print/x *(unsigned *) &rounds",
            "print/x *(unsigned *) 0x80000104",
            "print *(unsigned *) 0x20000000",
            "set var *(unsigned *) 0x20000000 = 1",
            "tbreak descend if $i0 < 20",
            "continue",
            "up",
            "set $l7 = 0x777",
            "down",
            "up",
            "print/x $l7",
            "continue",
        ],
    );
    has(
        &said,
        &[
            "= 4660\n",
            "= 1.5\n",
            "= 0x3\n",
            "= 0x6\n",
            "= 0x777\n",
            "exited normally",
        ],
    );
    has(
        &said,
        &[
            "Cannot access memory at address 0x20000000",
            "Cannot access memory at address 0x20000000",
        ],
    );
    let mut other = self::machine(&path, 1);
    let image = Image::read(&std::fs::read(&path).expect("it was built")).expect("an image");
    let rounds = image.symbol("rounds").expect("a variable").address;
    other
        .bus
        .write_image(rounds, &[0, 0, 0, 3])
        .expect("memory");
    assert_eq!(outcome.uart, alone(&mut other).0);
}

/// A loop that never ends of itself: `add %o0, 1, %o0`, and back.
const LOOP: [u32; 3] = [0x9002_2001, 0x10bf_ffff, NOP];

#[test]
fn an_instruction_that_gdb_writes_is_what_is_executed() {
    let mut machine = machine_of(&LOOP);
    let (said, outcome) = gdb(
        &mut machine,
        None,
        &[
            "break *0x40000000 if $o0 == 1000",
            "continue",
            "delete",
            "print $o0",
            &format!("set var *(unsigned *) 0x40000004 = {END:#x}"),
            "continue",
        ],
    );
    has(&said, &["= 1000\n", "exited normally"]);
    assert_eq!(
        outcome.parting.expect("no error"),
        Parting::Ended { signal: 0 }
    );
    assert_eq!(machine.cores()[0].registers.get(8), 1001);
}

#[test]
fn a_jump_goes_on_at_its_target() {
    let mut machine = machine_of(&[LOOP[0], LOOP[1], NOP, NOP, 0x9002_2005, END]);
    let commands = ["tbreak *0x40000008", "continue", "jump *0x40000010"];
    let (said, _) = gdb(&mut machine, None, &commands);
    has(&said, &["exited normally"]);
    assert_eq!(machine.cores()[0].registers.get(8), 6);
}

#[test]
fn error_mode_stops_with_its_reason_and_then_ends() {
    // `unimp`; then `sethi 0x20000000, %g1; ld [%g1], %g2`; then `ld [%g0 + 1], %g2`; then `ta 3`.
    let cases: [(&[u32], &str, &str, u8); 4] = [
        (&[0], "SIGILL", "no instruction", 4),
        (
            &[0x0308_0000, 0xc400_4000],
            "SIGSEGV",
            "no memory or device",
            11,
        ),
        (&[0xc400_2001], "SIGBUS", "not aligned", 10),
        (&[0x91d0_2003], "SIGTRAP", "software trap 3", 5),
    ];
    for (words, name, reason, number) in cases {
        let mut machine = machine_of(words);
        let commands = ["continue", "info registers pc", "continue"];
        let (said, outcome) = gdb(&mut machine, None, &commands);
        let at = format!("{:#x}", BASE + 4 * (words.len() as u32 - 1));
        let received = format!("received signal {name}");
        let terminated = format!("Program terminated with signal {name}");
        has(&said, &["core 0 is in error mode at 0x4000000", reason]);
        has(&said, &[&received, &at, &terminated]);
        let signal = match outcome.parting.expect("no error") {
            Parting::Ended { signal } => signal,
            other => panic!("{other:?}"),
        };
        // gdb numbers SIGBUS as BSD does.
        assert_eq!(signal, number, "{name}");
    }
}

#[test]
fn each_core_is_a_thread() {
    let path = image("casa");
    let mut machine = machine(&path, 4);
    let commands = [
        "info threads",
        "tbreak work",
        "continue",
        "tbreak work if $_thread == 3",
        "continue",
        "info threads",
        "stepi",
        "thread 2",
        "stepi",
        "stepi",
        "print $_thread",
        "info registers tbr",
        "break *$pc",
    ];
    // Long enough that each core comes to it, and to the end of its time while it steps over it.
    let commands = [
        &commands[..],
        &["continue"; 60],
        &["delete", "monitor cycles", "detach"],
    ]
    .concat();
    let (said, outcome) = gdb(&mut machine, Some(&path), &commands);
    has(
        &said,
        &[
            "Thread 1.1 (core 0 runs)",
            "Thread 1.2 (core 1 waits to be started)",
            "Thread 1.4 (core 3 waits to be started)",
            "hit Temporary breakpoint 2, 0x",
            "Thread 1.2 (core 1 runs)",
            "= 2\n",
            "0x40000000",
            "detached",
        ],
    );
    has(&said, &["core 3: runs"]);
    assert_eq!(said.matches(" hit Breakpoint 3, 0x").count(), 60, "{said}");
    for thread in 1..=4 {
        has(&said, &[&format!("Thread {thread} hit Breakpoint 3, 0x")]);
    }
    assert_eq!(outcome.parting.expect("no error"), Parting::Detached);
    // What remains is run without a debugger.
    let (rest, cycles, instructions) = alone(&mut machine);
    assert!(rest.ends_with("equal\n"), "{rest}");
    assert_eq!(
        (rest, cycles, instructions),
        alone(&mut self::machine(&path, 4))
    );
}

#[test]
fn monitor_tells_what_there_is() {
    let path = image("deep-short");
    let mut machine = machine(&path, 1);
    let (said, outcome) = gdb(
        &mut machine,
        Some(&path),
        &[
            "break halt",
            "continue",
            "monitor uart",
            "monitor cycles",
            "monitor notes",
            "monitor help",
            "monitor reset",
            "maintenance flush register-cache",
            "info registers pc",
            "kill",
        ],
    );
    has(
        &said,
        &[
            "deep 0x",
            " cycles, ",
            "core 0: runs",
            "monitor reset: ",
            "as at the beginning",
        ],
    );
    has(&said, &["\npc ", "0x0"]);
    assert_eq!(outcome.parting.expect("no error"), Parting::Killed);
    assert_eq!(machine.instructions(), 0);
}

/// A peer that speaks the protocol by itself, as badly as it likes.
struct Peer(TcpStream);

impl Peer {
    fn connect(address: SocketAddr) -> Peer {
        let stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        Peer(stream)
    }

    /// Sends `body` as a packet; an end of the connection is what the answer will tell.
    fn send(&mut self, body: &[u8]) {
        let sum = body.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
        let packet = [b"$", body, format!("#{sum:02x}").as_bytes()].concat();
        let _ = self.0.write_all(&packet);
    }

    /// The body of the next packet; none if the connection ends.
    fn receive(&mut self) -> Option<String> {
        let mut body = Vec::new();
        let mut begun = false;
        loop {
            let mut byte = [0];
            match self.0.read(&mut byte) {
                Ok(1) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("no answer comes"),
                _ => return None,
            }
            match byte[0] {
                b'$' => begun = true,
                b'#' if begun => break,
                byte if begun => body.push(byte),
                _ => {}
            }
        }
        let mut sum = [0; 2];
        self.0.read_exact(&mut sum).ok()?;
        Some(String::from_utf8_lossy(&body).into_owned())
    }

    fn ask(&mut self, body: &str) -> Option<String> {
        self.send(body.as_bytes());
        self.receive()
    }
}

/// Steps that the stub does, for debuggers that do not step by breakpoints: through overflows, underflows and interrupts,
/// an instruction of the program each.
#[test]
fn the_stub_steps_by_itself() {
    let path = image("deep-short");
    let image = Image::read(&std::fs::read(&path).expect("it was built")).expect("an image");
    let address = |name| image.symbol(name).expect("a symbol").address;
    let (descend, count) = (address("descend"), address("count"));
    // The trap table and its handlers come before the first function.
    let functions = image.symbols().iter().filter(|symbol| symbol.function);
    let first = functions
        .map(|symbol| symbol.address)
        .min()
        .expect("a function");
    let mut machine = machine(&path, 1);
    let (pcs, _) = served(&mut machine, |address| {
        let mut peer = Peer::connect(address);
        assert_eq!(
            peer.ask(&format!("Z0,{descend:x},4")).as_deref(),
            Some("OK")
        );
        assert_eq!(
            peer.ask("vCont;c").as_deref(),
            Some("T05thread:01;swbreak:;")
        );
        assert_eq!(
            peer.ask(&format!("z0,{descend:x},4")).as_deref(),
            Some("OK")
        );
        let mut step = |how: &str| {
            assert_eq!(peer.ask(how).as_deref(), Some("T05thread:01;"));
            let pc = peer.ask("p44").expect("an answer");
            u32::from_str_radix(&pc.replace("0* ", "0000"), 16).unwrap_or_else(|_| panic!("{pc}"))
        };
        let mut pcs: Vec<u32> = (0..30_000).map(|_| step("vCont;s:1;c")).collect();
        let inside = |pc: u32| (descend..descend + 0x60).contains(&pc);
        while !inside(pcs[pcs.len() - 1]) {
            pcs.push(step("s"));
        }
        let range = format!("vCont;r{descend:x},{:x}:1;c", descend + 0x60);
        assert!(!inside(step(&range)));
        pcs
    });
    assert!(
        pcs.iter().all(|&pc| pc >= first),
        "a handler of windows is seen"
    );
    assert!(!pcs.contains(&count), "a handler of interrupts is seen");
    assert!(
        pcs.windows(2).all(|pair| pair[0] != pair[1]),
        "a step that does nothing"
    );
    assert!(machine.cores()[0].taken > 300, "there were traps");
    assert_eq!(alone(&mut machine), alone(&mut self::machine(&path, 1)));
}

/// A program that runs for ever, or sleeps for ever beside a device that may wake it, is stopped.
#[test]
fn an_interrupt_comes_through() {
    // `wr %g0, %asr19`, and back.
    let sleep = [0xa780_0000, 0x10bf_ffff, NOP];
    for (cores, program) in [(1, LOOP.to_vec()), (1, sleep.to_vec()), (2, sleep.to_vec())] {
        let configuration = Configuration {
            cores,
            ..Configuration::default()
        };
        let mut machine =
            Machine::with_image(&configuration, &Image::of_words(BASE, &program)).expect("it fits");
        machine
            .bus
            .attach(0x8000_0800, 0x100, Box::new(Ticker(400)));
        let (answers, outcome) = served(&mut machine, |address| {
            let mut peer = Peer::connect(address);
            let supported = peer.ask("qSupported:multiprocess+;swbreak+");
            peer.send(b"vCont;c");
            std::thread::sleep(Duration::from_millis(100));
            peer.0.write_all(&[3]).expect("it runs");
            let stopped = peer.receive();
            peer.send(b"k");
            (supported, stopped)
        });
        assert!(answers.0.expect("an answer").contains("PacketSize=4000"));
        assert_eq!(
            answers.1.as_deref(),
            Some("T02thread:p01.01;"),
            "{program:x?}"
        );
        assert_eq!(outcome.parting.expect("no error"), Parting::Killed);
        assert!(machine.cycles() > 1000);
    }
}

/// What asks for too much, or for what is not there, is answered with an error, and the session goes on.
#[test]
fn too_much_is_an_error() {
    let mut machine = machine_of(&LOOP);
    let (answers, outcome) = served(&mut machine, |address| {
        let mut peer = Peer::connect(address);
        let bodies = [
            "m40000000,100000000",
            "m40000000,ffffffff",
            "m0,ffffffff",
            "m40000000,2001",
            "mfffffff0,2000",
            "mfffffff0,20",
            "m40000000,2000",
            "m43fffff0,20",
            "mfffff000,1000",
            "M20000000,4:00000000",
            "M43fffffe,4:00000000",
            "Z2,40000000,0",
            "z0,40000000,4",
            "p48",
            "pffffffff",
            "P0=12345678",
            "Hgp1.2",
            "g",
            "p1",
            "m40000000,4",
        ];
        bodies.map(|body| (body, peer.ask(body)))
    });
    for (body, answer) in answers {
        let answer = answer.unwrap_or_else(|| panic!("the session ended at {body}"));
        let length = answer.len();
        let good = match body {
            "m40000000,2000" => !answer.starts_with('E') && length > 0,
            "mfffff000,1000" | "mfffffff0,2000" | "mfffffff0,20" | "m43fffff0,20" => {
                !answer.starts_with('E')
            }
            "Hgp1.2" | "P0=12345678" => answer == "OK",
            "p48" | "pffffffff" => answer.is_empty(),
            _ => answer.starts_with('E'),
        };
        assert!(good, "{body}: {answer}");
    }
    assert_eq!(outcome.parting.expect("no error"), Parting::Lost);
}

/// Whatever comes, the stub ends in time, without a panic.
#[test]
fn a_broken_peer_does_no_harm() {
    let known: [&[u8]; 24] = [
        b"qSupported:multiprocess+",
        b"?",
        b"g",
        b"G00",
        b"m40000000,40",
        b"M40000000,4:9de3bfa0",
        b"X40000000,4:abcd",
        b"vCont;s:p1.1;c:p1.-1",
        b"vCont;r40000000,40000008:p1.1;c",
        b"vCont?",
        b"c",
        b"s",
        b"Z0,40000004,4",
        b"z0,40000004,4",
        b"Z2,40000000,8",
        b"Z4,fffffff0,ffffffff",
        b"Hg0",
        b"Hcp-1.-1",
        b"qfThreadInfo",
        b"qXfer:features:read:target.xml:0,fff",
        b"qRcmd,6379636c6573",
        b"p44",
        b"P44=40000001",
        b"qThreadExtraInfo,p1.1",
    ];
    for seed in 0..500 {
        let mut random = Random::new(seed);
        let mut machine = machine_of(&LOOP);
        let begin = Instant::now();
        let ((), outcome) = served(&mut machine, |address| {
            let mut peer = Peer::connect(address);
            for _ in 0..random.below(40) {
                let mut body = known[random.below(known.len() as u64) as usize].to_vec();
                for _ in 0..random.below(3) {
                    let at = random.below(body.len() as u64) as usize;
                    match random.below(4) {
                        0 => body[at] = random.next() as u8,
                        1 => body[at] = b"0f,:;-#$}*"[random.below(10) as usize],
                        2 => body.truncate(at + 1),
                        _ => body.insert(at, b"0123456789abcdef"[random.below(16) as usize]),
                    }
                }
                match random.below(12) {
                    0 => drop(peer.0.write_all(&body)),
                    1 => drop(peer.0.write_all(&[3])),
                    2 => drop(peer.0.write_all(&[b'x'; 20_000])),
                    _ => peer.send(&body),
                }
            }
            drop(peer.0.shutdown(std::net::Shutdown::Write));
            // What is answered is not looked at.
            drop(peer.0.read_to_end(&mut Vec::new()));
        });
        assert!(
            begin.elapsed() < Duration::from_secs(20),
            "seed {seed} takes too long"
        );
        let good = matches!(
            outcome.parting,
            Ok(Parting::Lost | Parting::Detached | Parting::Killed | Parting::Ended { .. })
                | Err(NotServed::Protocol(_) | NotServed::Connection(_))
        );
        assert!(good, "seed {seed}: {:?}", outcome.parting);
    }
}

#[test]
fn an_address_that_is_taken_is_an_error() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let options = Options {
        address: taken.local_addr().expect("an address"),
        ..Options::default()
    };
    let error = gdb::serve(&mut machine_of(&[END]), options).expect_err("it is taken");
    assert!(matches!(error, NotServed::Listen { .. }), "{error}");
}
