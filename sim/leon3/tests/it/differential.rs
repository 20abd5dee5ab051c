//! The simulator beside QEMU 10: the state before every instruction, on images and on random instructions.
//!
//! An instruction is a cycle, the timers are QEMU's (`timer.rs`), and what QEMU is known to compute otherwise is foreseen
//! (`quirk.rs`). The state at the entry is that of QEMU's boot code.
//!
//! `METES_INSTRUCTIONS` asks for the long form: about so many instructions with registers (10^8 in `scripts/test leon3_long`).
//!
//! Invariant: an instruction that is counted was equal in all that was asked for, on both sides, and nothing was left
//! out before it.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use metes_leon3::{
    Bus, Configuration, Core, End, Image, Machine, Model, Observer, Stop, Touch, Trap,
};

use crate::images::sized;
use crate::qemu::{Detail, Options, Qemu, State};
use crate::quirk::{Quirk, Why, tiny};
use crate::stream::stream;
use crate::timer::QemuTimer;

/// How many instructions a difference is shown with.
const SHOWN: usize = 16;
const SHIFT: u32 = 5;

/// A comparison that ended without a difference.
#[derive(Debug, Default)]
struct Agreed {
    instructions: u64,
    interrupts: u64,
    quirks: BTreeMap<Why, u64>,
    /// Whether the image came to its end.
    ended: bool,
}

impl Agreed {
    fn add(&mut self, other: &Agreed) {
        self.instructions += other.instructions;
        self.interrupts += other.interrupts;
        for (why, count) in &other.quirks {
            *self.quirks.entry(*why).or_default() += count;
        }
    }
}

/// The instructions that the long form asks for.
fn long() -> Option<u64> {
    let it = std::env::var("METES_INSTRUCTIONS").ok()?;
    Some(it.parse().expect("METES_INSTRUCTIONS is a number"))
}

/// Compares image `name` whole, or up to `most` instructions.
fn image(name: &str, sizes: &[(&str, u32)], detail: Detail, shift: u32, most: u64) -> Agreed {
    compare(name, &sized(name, sizes), detail, shift, most)
}

/// Runs `bytes` on both, up to `most` instructions.
///
/// # Panics
/// They differ.
fn compare(name: &str, bytes: &[u8], detail: Detail, shift: u32, most: u64) -> Agreed {
    let begin = Instant::now();
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::io::Write::write_all(&mut file, bytes).expect("it is written");
    let image = Image::read(bytes).expect("an image");
    let (mut machine, timer) = machine(&image, shift);
    let options = Options {
        detail,
        cpus: 1,
        shift: Some(shift),
    };
    let mut beside = Beside::new(
        Qemu::ten(file.path(), &options),
        image.entry(),
        detail,
        timer,
    );
    beside.most = most;
    let stop = loop {
        match machine.run(u64::MAX, &mut beside) {
            Stop::Observer { .. } => {}
            stop => break Some(stop),
        }
        match std::mem::replace(&mut beside.want, Want::Nothing) {
            Want::Enough => break None,
            Want::Differs(how) => panic!("{name}: {how}"),
            want => beside.serve(want, &mut machine),
        }
    };
    if let Some(stop) = stop {
        assert_eq!(
            stop,
            Stop::End(End::Halt { core: 0 }),
            "{name}: {}",
            beside.lately()
        );
        assert_eq!(
            beside.expected,
            None,
            "{name}: QEMU goes on; {}",
            beside.lately()
        );
        let (here, there) = (machine.printed(0), beside.qemu.printed());
        assert_eq!(
            String::from_utf8_lossy(&here),
            String::from_utf8_lossy(&there),
            "{name}"
        );
        beside.agreed.ended = true;
    }
    let agreed = beside.agreed;
    eprintln!(
        "{name}: {} instructions ({detail:?}), {} interrupts, {:?}, {:.1} s",
        agreed.instructions,
        agreed.interrupts,
        agreed.quirks,
        begin.elapsed().as_secs_f64()
    );
    agreed
}

/// The simulator at the entry, in the state in which QEMU's boot code comes there.
fn machine(image: &Image, shift: u32) -> (Machine, QemuTimer) {
    let configuration = Configuration {
        model: Model::Uniform,
        memory: 128 << 20,
        ..Configuration::default()
    };
    let mut machine = Machine::with_image(&configuration, image).expect("a machine");
    let timer = QemuTimer::new(shift);
    timer.attach(&mut machine.bus);
    let core = machine.core_mut(0);
    core.registers.set(1, image.entry());
    core.registers.set(2, 3);
    core.registers.set(14, 0);
    // Its boot code has tested a zero.
    core.icc = 4;
    core.wim = 1;
    // Version 4 of a floating-point unit, where GRFPU says 2. Nothing writes the field.
    core.float.fsr = 4 << 17;
    (machine, timer)
}

/// What the one who looks on wants done before the simulator goes on.
enum Want {
    Nothing,
    /// Give the last instruction QEMU's result.
    Quirk(Quirk),
    /// Give it QEMU's floating-point state, in which a result is not tiny.
    Tiny(u32),
    /// Timers have run out.
    Due,
    /// The next instruction puts the core to sleep.
    Sleep,
    /// It did, and is over.
    Wake,
    /// As many instructions as asked for were compared.
    Enough,
    Differs(String),
}

#[derive(PartialEq)]
enum Sleep {
    No,
    Next,
    Now,
}

/// Looks at each state of the simulator, with QEMU's beside it.
struct Beside {
    qemu: Qemu,
    /// QEMU's next state, none at its end.
    expected: Option<State>,
    detail: Detail,
    most: u64,
    timer: QemuTimer,
    sleep: Sleep,
    /// An instruction was let go since the last look, and trapped or not, and what QEMU makes of it.
    executing: bool,
    trapped: Option<Trap>,
    quirk: Option<Quirk>,
    lately: VecDeque<(u32, u32)>,
    want: Want,
    agreed: Agreed,
}

impl Beside {
    fn new(mut qemu: Qemu, entry: u32, detail: Detail, timer: QemuTimer) -> Beside {
        let expected = qemu.find(|state| state.pc == entry);
        Beside {
            qemu,
            expected,
            detail,
            most: u64::MAX,
            timer,
            sleep: Sleep::No,
            executing: false,
            trapped: None,
            quirk: None,
            lately: VecDeque::new(),
            want: Want::Nothing,
            agreed: Agreed::default(),
        }
    }

    /// Does what was wanted.
    fn serve(&mut self, want: Want, machine: &mut Machine) {
        let now = machine.cores()[0].cycles;
        match want {
            Want::Quirk(quirk) => {
                quirk.apply(machine);
                *self.agreed.quirks.entry(quirk.why).or_default() += 1;
            }
            Want::Tiny(fsr) => {
                machine.core_mut(0).float.fsr = fsr;
                *self.agreed.quirks.entry(Why::Tiny).or_default() += 1;
            }
            Want::Due => self.timer.act_at(now, false, &mut machine.bus),
            Want::Sleep => {
                self.timer.act_at(now + 2, true, &mut machine.bus);
                self.sleep = Sleep::Next;
            }
            Want::Wake => {
                self.timer.awake(&mut machine.bus);
                self.sleep = Sleep::No;
            }
            Want::Nothing | Want::Enough | Want::Differs(_) => {}
        }
    }

    /// What must be done before the instruction at hand is looked at.
    fn first(&mut self) -> Want {
        if std::mem::take(&mut self.executing) {
            self.timer.executed(self.trapped);
            if self.trapped.take().is_some() {
                self.quirk = None;
            }
        }
        if let Some(quirk) = self.quirk.take() {
            Want::Quirk(quirk)
        } else if self.sleep == Sleep::Now {
            Want::Wake
        } else if self.timer.is_due() {
            Want::Due
        } else {
            Want::Nothing
        }
    }

    /// The state of `core`, beside QEMU's.
    fn look(&self, core: &Core) -> Want {
        let mut here = State {
            pc: core.pc,
            npc: core.npc,
            ..State::ZERO
        };
        if self.detail != Detail::Places {
            here.psr = core.psr();
            here.wim = core.wim;
            here.y = core.y;
            here.fsr = core.float.fsr;
            here.registers = core.registers.all();
        }
        if self.detail == Detail::Floats {
            here.floats = core.float.registers;
        }
        if self.agreed.instructions >= self.most {
            return Want::Enough;
        }
        if self.expected == Some(here) {
            return Want::Nothing;
        }
        let tiny = self.expected.and_then(|there| self.tiny(&here, &there));
        match (tiny, self.expected) {
            (Some(fsr), _) => Want::Tiny(fsr),
            (None, there) => Want::Differs(
                format!(
                    "after {} equal instructions:\n{}",
                    self.agreed.instructions,
                    difference(&here, there.as_ref())
                ) + &self.lately(),
            ),
        }
    }

    fn tiny(&self, here: &State, there: &State) -> Option<u32> {
        let word = self.lately.back()?.1;
        tiny(word, here, there)
    }

    /// The last instructions, the latest at the end.
    fn lately(&self) -> String {
        let lines = self
            .lately
            .iter()
            .map(|(pc, word)| format!("  {pc:08x}: {word:08x}\n"));
        format!("the last instructions:\n{}", lines.collect::<String>())
    }
}

impl Observer for Beside {
    fn before(&mut self, core: &Core, bus: &Bus) -> bool {
        self.want = self.first();
        if matches!(self.want, Want::Nothing) {
            self.want = self.look(core);
        }
        // What is no memory traps, and has no word.
        let word = bus.word(core.pc).unwrap_or(0);
        if matches!(self.want, Want::Nothing)
            && is_sleep(word)
            && self.sleep == Sleep::No
            && core.supervisor
        {
            self.want = Want::Sleep;
        }
        if !matches!(self.want, Want::Nothing) {
            return true;
        }
        if self.sleep == Sleep::Next {
            self.sleep = Sleep::Now;
        }
        self.quirk = Quirk::of(word, core);
        if self.lately.len() == SHOWN {
            self.lately.pop_front();
        }
        self.lately.push_back((core.pc, word));
        self.agreed.instructions += 1;
        self.executing = true;
        self.expected = self.qemu.next();
        false
    }

    fn touched(&mut self, _core: &Core, touch: Touch) {
        self.quirk = Quirk::of_access(&touch).or(self.quirk);
    }

    fn trapped(&mut self, _core: &Core, trap: Trap) {
        if (0x11..=0x1f).contains(&trap.0) {
            // Between instructions.
            self.agreed.interrupts += 1;
        } else {
            self.trapped = Some(trap);
        }
    }
}

/// `wr %asr19`.
fn is_sleep(word: u32) -> bool {
    word & 0xfff8_0000 == 2 << 30 | 19 << 25 | 0x30 << 19
}

/// Both states, and which fields differ.
fn difference(here: &State, there: Option<&State>) -> String {
    let Some(there) = there else {
        return format!("QEMU has ended; the simulator:\n{}", shown(here));
    };
    let mut fields = String::new();
    for (name, a, b) in [
        ("pc", here.pc, there.pc),
        ("npc", here.npc, there.npc),
        ("psr", here.psr, there.psr),
        ("wim", here.wim, there.wim),
        ("y", here.y, there.y),
        ("fsr", here.fsr, there.fsr),
    ] {
        if a != b {
            fields += &format!("  {name} is {a:08x}, in QEMU {b:08x}\n");
        }
    }
    for number in 0..32 {
        let (a, b) = (here.registers[number], there.registers[number]);
        if a != b {
            fields += &format!("  %r{number} is {a:08x}, in QEMU {b:08x}\n");
        }
        let (a, b) = (here.floats[number], there.floats[number]);
        if a != b {
            fields += &format!("  %f{number} is {a:08x}, in QEMU {b:08x}\n");
        }
    }
    format!(
        "{fields}the simulator:\n{}QEMU:\n{}",
        shown(here),
        shown(there)
    )
}

fn shown(state: &State) -> String {
    let rows = |registers: &[u32; 32]| -> String {
        let rows = registers.chunks(8).map(|row| {
            let row: Vec<String> = row.iter().map(|word| format!("{word:08x}")).collect();
            format!("    {}\n", row.join(" "))
        });
        rows.collect()
    };
    format!(
        "  pc {:08x} npc {:08x} psr {:08x} wim {:08x} y {:08x} fsr {:08x}\n{}  floats\n{}",
        state.pc,
        state.npc,
        state.psr,
        state.wim,
        state.y,
        state.fsr,
        rows(&state.registers),
        rows(&state.floats)
    )
}

/// A test of an image in its short form: its name, the sizes of that, what is compared; and in the long form its name and
/// the share of all instructions to which it is compared, where it has one.
macro_rules! images {
    ($($test:ident: $short:literal $sizes:expr, $detail:ident; $long:expr;)*) => {$(
        #[test]
        fn $test() {
            let share: Option<(&str, u64)> = $long;
            let Some((most, (name, share))) = long().zip(share) else {
                let agreed = image($short, $sizes, Detail::$detail, SHIFT, u64::MAX);
                assert!(agreed.ended);
                return;
            };
            let detail = if Detail::$detail == Detail::Floats { Detail::Floats } else { Detail::Integers };
            let agreed = image(name, &[], detail, SHIFT, most / share);
            assert!(agreed.ended || agreed.instructions == most / share);
        }
    )*};
}

// The shares of kernel, deep and heap are a quarter each; the others end before theirs, and streams are a tenth: in sum a little
// more than was asked for.
images! {
    arithmetic_agrees: "arithmetic" &[], Places; Some(("arithmetic", 4));
    traps_agree: "traps" &[], Floats; None;
    interrupts_agree: "interrupts" &[], Integers; None;
    floats_agree: "floats" &[], Floats; Some(("floats", 4));
    casa_agrees: "casa" &[], Integers; None;
    heap_agrees: "heap" &[("calls", 400)], Integers; Some(("heap", 4));
    kernel_agrees: "kernel-short" &[], Floats; Some(("kernel", 4));
    records_agree: "records-short" &[], Floats; Some(("records", 4));
    deep_agrees: "deep-short" &[], Integers; Some(("deep", 4));
}

/// Interrupts come at the same instructions with other lengths of an instruction, too.
#[test]
fn interrupts_agree_whatever_an_instruction_takes() {
    for shift in [3, 7] {
        for name in ["interrupts", "deep-short"] {
            let agreed = image(name, &[], Detail::Places, shift, u64::MAX);
            assert!(agreed.interrupts > 1, "{agreed:?}");
        }
    }
}

#[test]
fn random_instructions_agree() {
    let most = long().map_or(1_000_000, |most| most / 10);
    let mut all = Agreed::default();
    let mut seed = 0;
    while all.instructions < most || seed < 24 {
        let detail = match seed % 4 {
            0 => Detail::Floats,
            1 => Detail::Integers,
            _ if long().is_some() => Detail::Integers,
            _ => Detail::Places,
        };
        let name = format!("stream {seed}");
        let agreed = compare(&name, &stream(seed, 40_000), detail, SHIFT, u64::MAX);
        assert!(agreed.ended);
        all.add(&agreed);
        seed += 1;
    }
    eprintln!("{seed} streams: {all:?}");
}
