//! The arguments of `metes leon3`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::quantity::positive_size;

/// Run programs for LEON3 on a simulator that is exact to the instruction: cores, devices, time
///
/// An image is a static executable (ELF, 32 bits, SPARC) for bare metal. It ends by `ta 0` with traps
/// off. The machine is a LEON3 as QEMU's leon3_generic has it: RAM from 0x40000000, serial line at
/// 0x80000100 (interrupt 3), IRQMP at 0x80000200, timers at 0x80000300 (interrupts 6 and 7).
#[derive(Args)]
#[command(after_help = "Examples:
  metes leon3 run firmware.elf
  metes leon3 run --cores 4 --model caches firmware.elf --json
  metes leon3 trace firmware.elf | head")]
pub(crate) struct Leon3 {
    #[command(subcommand)]
    pub(crate) action: Leon3Action,
}

#[derive(Subcommand)]
pub(crate) enum Leon3Action {
    Run(Leon3Run),
    Trace(Leon3Trace),
    Profile(Leon3Profile),
    Cover(Leon3Cover),
    Stack(Leon3Stack),
    Gdb(Leon3Gdb),
    Bound(Leon3Bound),
}

/// Run an image to its end and say what it printed, how long it took and how it ended
///
/// What the first serial line prints goes to stdout; how the run ended, to stderr. Exit status 1 if
/// it ended in error mode: a trap while traps were off, the watchdog, or sleep that nothing ends.
///
/// A watched place is KIND:PLACE, then +BYTES and =VALUE if wanted: r, w or a (either) and an address or symbol for what is
/// read or written there, x for an instruction that is executed, c and a register (c:%o0, c:psr) for what
/// changes it.
#[derive(Args)]
#[command(after_help = "Examples:
  metes leon3 run --max-instructions 1000000 firmware.elf --json
  metes leon3 run --watch w:counter --stop x:main --snapshot main.l3 firmware.elf
  metes leon3 run --resume main.l3 firmware.elf")]
pub(crate) struct Leon3Run {
    #[command(flatten)]
    pub(crate) machine: Leon3Machine,
    /// How instructions are executed; the run is the same to the bit, cycles included
    #[arg(long, value_enum, default_value = "translate")]
    pub(crate) engine: Leon3Engine,
    /// Say on stderr what is done at this place; may be given more than once
    #[arg(long, value_name = "PLACE")]
    pub(crate) watch: Vec<String>,
    /// Likewise, and end the run there, before the next instruction
    #[arg(long, value_name = "PLACE")]
    pub(crate) stop: Vec<String>,
    /// Bytes that arrive at the first serial line, one after the other, from the beginning on
    #[arg(long, value_name = "FILE")]
    pub(crate) uart_input: Option<PathBuf>,
    /// Bits a second with which they arrive, ten to a byte
    #[arg(long, value_name = "RATE", default_value_t = 115_200, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) uart_rate: u32,
    /// Save the whole machine there as the run leaves it
    #[arg(long, value_name = "FILE")]
    pub(crate) snapshot: Option<PathBuf>,
    /// Go on with a machine that was saved; the image is where symbols come from
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "cores", "model", "memory", "windows", "quantum", "frequency", "timer_frequency", "timer_interrupt",
        "uarts", "uart_depth", "extended_interrupt", "watchdog", "no_float", "mac",
    ])]
    pub(crate) resume: Option<PathBuf>,
}

/// How instructions are executed.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Leon3Engine {
    /// One by one
    Interpret,
    /// Hot code as code of the host, except where an observer looks or caches are modelled
    Translate,
}

/// Write each executed instruction: core, address and word, in hexadecimal, one a line
///
/// Instructions that trap stand there, those that are annulled do not.
#[derive(Args)]
#[command(after_help = "Example: metes leon3 trace --max-instructions 1000 firmware.elf")]
pub(crate) struct Leon3Trace {
    #[command(flatten)]
    pub(crate) machine: Leon3Machine,
    /// Write traps and interrupts, too, in lines that begin with #
    #[arg(long)]
    pub(crate) traps: bool,
}

/// Count instructions and cycles by function, and find the longest call of each
///
/// Functions are the symbols of the image. What the first serial line prints goes to stderr.
#[derive(Args)]
#[command(after_help = "Examples:
  metes leon3 profile firmware.elf
  metes leon3 profile --folded firmware.elf > firmware.folded, for a flame graph")]
pub(crate) struct Leon3Profile {
    #[command(flatten)]
    pub(crate) machine: Leon3Machine,
    /// Write stacks instead, `main;parse;read 1234`, a line each: what flame graphs are made of
    #[arg(long)]
    pub(crate) folded: bool,
    /// What the numbers of stacks count
    #[arg(long, value_enum, default_value = "cycles", requires = "folded")]
    pub(crate) weight: Leon3Weight,
}

/// What stacks are weighed by.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Leon3Weight {
    /// Cycles
    Cycles,
    /// Instructions
    Instructions,
}

/// Write which lines, functions and branches were executed, as a tracefile of lcov
///
/// Lines need an image that was compiled with -g. What the first serial line prints goes to stderr, as
/// does the summary.
#[derive(Args)]
#[command(
    after_help = "Example: metes leon3 cover firmware.elf > firmware.info; genhtml firmware.info"
)]
pub(crate) struct Leon3Cover {
    #[command(flatten)]
    pub(crate) machine: Leon3Machine,
}

/// Tell how deep each stack was used, by which calls, and how deep each function went
///
/// What the first serial line prints goes to stderr.
#[derive(Args)]
#[command(after_help = "Example: metes leon3 stack firmware.elf")]
pub(crate) struct Leon3Stack {
    #[command(flatten)]
    pub(crate) machine: Leon3Machine,
}

/// Wait for gdb and let it run the image: breakpoints, watchpoints, single steps, a thread each core
///
/// In gdb: target remote :2345. `monitor help` says what else there is. What the first serial line prints
/// goes to stdout.
#[derive(Args)]
#[command(
    after_help = "Example: metes leon3 gdb firmware.elf, and gdb-multiarch -ex 'target remote :2345' firmware.elf"
)]
pub(crate) struct Leon3Gdb {
    #[command(flatten)]
    pub(crate) machine: Leon3Machine,
    /// Where to wait for gdb
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:2345")]
    pub(crate) listen: std::net::SocketAddr,
}

/// Bound instructions, cycles and stack of a function, by the longest path through its code
///
/// Whatever data it meets. Loops need a bound, functions that do not return a name. A place is an address
/// (0x40001234), a symbol, or a symbol and how far behind it (malloc+0x1c).
#[derive(Args)]
#[command(
    after_help = "Example: metes leon3 bound firmware.elf malloc --loop malloc+0x2c=16 --ending panic"
)]
pub(crate) struct Leon3Bound {
    /// The image
    pub(crate) image: PathBuf,
    /// The function
    #[arg(value_name = "PLACE")]
    pub(crate) function: String,
    /// A loop's head, and how often it is reached each time the loop is entered
    #[arg(long = "loop", value_name = "PLACE=COUNT")]
    pub(crate) loops: Vec<String>,
    /// A function that does not return
    #[arg(long, value_name = "PLACE")]
    pub(crate) ending: Vec<String>,
    /// A jump or call through a register, and where it may go
    #[arg(long = "target", value_name = "PLACE=PLACE")]
    pub(crate) targets: Vec<String>,
    /// The trap table, whose handlers of window overflow and underflow are bounded, too
    #[arg(long, value_name = "PLACE")]
    pub(crate) trap_table: Option<String>,
    /// Register windows
    #[arg(long, value_name = "COUNT", default_value_t = 8, value_parser = clap::value_parser!(u32).range(2..=32))]
    pub(crate) windows: u32,
    /// Loads and stores may be those of devices
    #[arg(long)]
    pub(crate) devices: bool,
}

/// What time is counted by.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Leon3Model {
    /// An instruction is a cycle
    Uniform,
    /// The cycles of LEON3's manual, every access a hit
    Flat,
    /// Likewise, with private caches and a shared bus
    Caches,
}

#[derive(Args)]
pub(crate) struct Leon3Machine {
    /// The image
    pub(crate) image: PathBuf,
    /// Cores, 1 to 64
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    pub(crate) cores: usize,
    /// Stop after so many instructions of all cores together
    #[arg(long, value_name = "COUNT")]
    pub(crate) max_instructions: Option<u64>,
    /// What time is counted by
    #[arg(long, value_enum, default_value = "flat")]
    pub(crate) model: Leon3Model,
    /// Bytes of RAM
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = positive_size)]
    pub(crate) memory: u64,
    /// Register windows, 2 to 32
    #[arg(long, value_name = "COUNT", default_value_t = 8)]
    pub(crate) windows: usize,
    /// Longest time for which one of several cores runs by itself, in cycles
    #[arg(long, value_name = "CYCLES", default_value_t = 64)]
    pub(crate) quantum: u64,
    /// Frequency of the cores, Hz
    #[arg(long, value_name = "HZ", default_value_t = 40_000_000)]
    pub(crate) frequency: u32,
    /// Frequency of the timers, Hz, if it is another
    #[arg(long, value_name = "HZ")]
    pub(crate) timer_frequency: Option<u32>,
    /// Interrupt of the first timer: 6 as QEMU has it, 8 on the GR712RC
    #[arg(long, value_name = "LINE", default_value_t = 6)]
    pub(crate) timer_interrupt: u8,
    /// Serial lines, 1 to 5: at 0x80000100, 0x80001000, 0x80001100, 0x80001200 and 0x80001300
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    pub(crate) uarts: usize,
    /// Bytes of the FIFOs of a serial line, 1 to 32; 1 is holding registers alone
    #[arg(long, value_name = "BYTES", default_value_t = 1)]
    pub(crate) uart_depth: usize,
    /// Line on which interrupts 16 to 31 arrive
    #[arg(long, value_name = "LINE", default_value_t = 0)]
    pub(crate) extended_interrupt: u8,
    /// Ticks after which the second timer, running from reset, ends the run
    #[arg(long, value_name = "TICKS")]
    pub(crate) watchdog: Option<u32>,
    /// Leave the floating-point unit out
    #[arg(long)]
    pub(crate) no_float: bool,
    /// Have the instructions umac and smac
    #[arg(long)]
    pub(crate) mac: bool,
}
