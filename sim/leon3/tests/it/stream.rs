//! Random instructions of every class, as an image that ends by itself.
//!
//! The image is a trap table, handlers, a body of blocks and a last `ta 0` with traps off. The body is executed
//! from its first to its last word, in loops of a counter that no other instruction writes; branches go
//! forward.
//!
//! Invariant: a seed gives the same image for ever, and its run ends: what is random never writes a
//! register of the frame (below), memory outside the scratch area, or a privileged register.

use metes_random::{Random, mix};

/// Start of RAM, of the image and of the trap table.
const BASE: u32 = 0x4000_0000;
/// What loads and stores reach: 4 KiB from here, behind the image.
const SCRATCH: u32 = 0x4020_0000;
/// Where windows spill: the stack grows down from here.
const STACK: u32 = 0x4030_0000;
const BODY_TURNS: u32 = 10;

// The frame: %g5 is what the handlers of windows keep, %g6 the scratch area, %g7 the counter of turns; %o6 and %i6
// are stack and frame. %l0 to %l3 of a window that a trap enters change, as they may.
const G0: u32 = 0;
const G5: u32 = 5;
const SCRATCH_REGISTER: u32 = 6;
const TURNS: u32 = 7;
const SP: u32 = 14;

/// An ELF file of about `instructions` that are executed, of which a tenth stands in it.
pub(crate) fn stream(seed: u64, instructions: u32) -> Vec<u8> {
    // Mixed: the sequences of neighbours under `nth` are one, shifted.
    let mut random = Random::new(mix(seed));
    let mut code = Code::new();
    code.trap_table();
    code.start(&mut random);
    let top = code.here();
    let most = (instructions / BODY_TURNS).max(16) as usize + code.words.len();
    let mut depth = 0;
    while code.words.len() < most {
        block(&mut code, &mut random, &mut depth);
    }
    // What was saved is restored, so that each turn begins in the same window.
    for _ in 0..depth {
        code.word(alu(0x3d, G0, G0, Second::Number(0)));
    }
    code.word(alu(0x14, TURNS, TURNS, Second::Number(1))); // subcc
    // bne is too short for a long body: be over a jump by call, which writes %o7 alone.
    code.word(branch(1, false, 4));
    code.nop();
    let back = top.wrapping_sub(code.here()) >> 2;
    code.word(1 << 30 | back & 0x3fff_ffff);
    code.nop();
    code.end();
    metes_leon3::image::elf(BASE, &code.words)
}

/// The second operand.
#[derive(Clone, Copy)]
enum Second {
    Register(u32),
    /// From -4096 to 4095.
    Number(i32),
}

fn format3(op: u32, rd: u32, op3: u32, rs1: u32, second: Second) -> u32 {
    let low = match second {
        Second::Register(register) => register,
        Second::Number(number) => 1 << 13 | number as u32 & 0x1fff,
    };
    op << 30 | rd << 25 | op3 << 19 | rs1 << 14 | low
}

fn alu(op3: u32, rd: u32, rs1: u32, second: Second) -> u32 {
    format3(2, rd, op3, rs1, second)
}

fn memory(op3: u32, rd: u32, rs1: u32, second: Second) -> u32 {
    format3(3, rd, op3, rs1, second)
}

fn float(op3: u32, rd: u32, rs1: u32, opf: u32, rs2: u32) -> u32 {
    2 << 30 | rd << 25 | op3 << 19 | rs1 << 14 | opf << 5 | rs2
}

/// Of integers; `words` from the branch on.
fn branch(condition: u32, annul: bool, words: u32) -> u32 {
    u32::from(annul) << 29 | condition << 25 | 2 << 22 | words
}

fn sethi(rd: u32, value: u32) -> u32 {
    rd << 25 | 4 << 22 | value >> 10
}

const NOP: u32 = 0x0100_0000;

struct Code {
    words: Vec<u32>,
}

impl Code {
    fn new() -> Self {
        Code { words: Vec::new() }
    }

    fn here(&self) -> u32 {
        BASE + 4 * self.words.len() as u32
    }

    fn word(&mut self, word: u32) {
        self.words.push(word);
    }

    fn nop(&mut self) {
        self.word(NOP);
    }

    fn set(&mut self, rd: u32, value: u32) {
        self.word(sethi(rd, value));
        let low = Second::Number((value & 0x3ff) as i32);
        self.word(alu(0x02, rd, rd, low));
    }

    /// Traps off and `ta 0`.
    fn end(&mut self) {
        self.word(alu(0x29, G5, G0, Second::Register(G0))); // rd %psr
        self.word(alu(0x05, G5, G5, Second::Number(0x20))); // andn
        self.word(alu(0x31, G0, G5, Second::Number(0))); // wr %psr
        for _ in 0..3 {
            self.nop();
        }
        self.word(0x91d0_2000); // ta 0
        self.nop();
    }

    /// 256 entries: to the start, the two of windows, and one that goes on behind what trapped.
    fn trap_table(&mut self) {
        const ENTRIES: u32 = 256 * 4;
        let skip = ENTRIES;
        let overflow = skip + 2;
        let underflow = overflow + OVERFLOW.len() as u32;
        let start = underflow + UNDERFLOW.len() as u32;
        for tt in 0..256 {
            let to = match tt {
                0 => start,
                5 => overflow,
                6 => underflow,
                _ => skip,
            };
            self.word(branch(8, false, to - tt * 4));
            self.nop();
            self.nop();
            self.nop();
        }
        // jmp %l2; rett %l2 + 4
        self.word(alu(0x38, G0, 18, Second::Number(0)));
        self.word(alu(0x39, G0, 18, Second::Number(4)));
        self.words.extend_from_slice(&OVERFLOW);
        self.words.extend_from_slice(&UNDERFLOW);
    }

    /// The window, traps, registers and scratch area at the start.
    fn start(&mut self, random: &mut Random) {
        self.set(1, 0x10c0); // EF, S, PS
        self.word(alu(0x31, G0, 1, Second::Number(0)));
        self.word(alu(0x32, G0, G0, Second::Number(2))); // wim
        self.set(2, BASE);
        self.word(alu(0x33, G0, 2, Second::Number(0))); // tbr
        for _ in 0..3 {
            self.nop();
        }
        self.set(SP, STACK);
        self.word(alu(0x31, G0, 1, Second::Number(0x20)));
        for _ in 0..3 {
            self.nop();
        }
        self.set(SCRATCH_REGISTER, SCRATCH);
        self.set(TURNS, BODY_TURNS);
        // FSR: a rounding, no exception enabled.
        self.set(1, (random.below(4) as u32) << 30);
        self.word(memory(0x04, 1, SCRATCH_REGISTER, Second::Number(0)));
        self.word(memory(0x21, 0, SCRATCH_REGISTER, Second::Number(0)));
        for register in 0..32 {
            self.set(1, operand(random));
            self.word(memory(0x04, 1, SCRATCH_REGISTER, Second::Number(8)));
            self.word(memory(0x20, register, SCRATCH_REGISTER, Second::Number(8)));
        }
        for register in (8..32).filter(|register| *register != SP) {
            self.set(register, operand(random));
        }
        for register in 1..5 {
            self.set(register, operand(random));
        }
        for word in 0..64 {
            self.set(G5, operand(random));
            let at = Second::Number(4 * word);
            self.word(memory(0x04, G5, SCRATCH_REGISTER, at));
        }
    }
}

/// As in `images/start.s`, with %g5 for what must live in two windows.
const OVERFLOW: [u32; 20] = [
    0xa750_0000, // rd %wim, %l3
    0x8b34_e001, // srl %l3, 1, %g5
    0xa92c_e007, // sll %l3, 7, %l4
    0x8a11_4014, // or %g5, %l4, %g5
    0x81e0_0000, // save
    0xe03b_a000, // std %l0, [%sp]
    0xe43b_a008, // std %l2, [%sp + 8]
    0xe83b_a010, // std %l4, [%sp + 16]
    0xec3b_a018, // std %l6, [%sp + 24]
    0xf03b_a020, // std %i0, [%sp + 32]
    0xf43b_a028, // std %i2, [%sp + 40]
    0xf83b_a030, // std %i4, [%sp + 48]
    0xfc3b_a038, // std %i6, [%sp + 56]
    0x8191_6000, // wr %g5, 0, %wim
    NOP,
    NOP,
    NOP,
    0x81e8_0000, // restore
    0x81c4_4000, // jmp %l1
    0x81cc_8000, // rett %l2
];

const UNDERFLOW: [u32; 22] = [
    0xa750_0000, // rd %wim, %l3
    0xa92c_e001, // sll %l3, 1, %l4
    0xab34_e007, // srl %l3, 7, %l5
    0xaa15_4014, // or %l5, %l4, %l5
    0x8195_6000, // wr %l5, 0, %wim
    NOP,
    NOP,
    NOP,
    0x81e8_0000, // restore
    0x81e8_0000, // restore
    0xe01b_a000, // ldd [%sp], %l0
    0xe41b_a008, // ldd [%sp + 8], %l2
    0xe81b_a010, // ldd [%sp + 16], %l4
    0xec1b_a018, // ldd [%sp + 24], %l6
    0xf01b_a020, // ldd [%sp + 32], %i0
    0xf41b_a028, // ldd [%sp + 40], %i2
    0xf81b_a030, // ldd [%sp + 48], %i4
    0xfc1b_a038, // ldd [%sp + 56], %i6
    0x81e0_0000, // save
    0x81e0_0000, // save
    0x81c4_4000, // jmp %l1
    0x81cc_8000, // rett %l2
];

/// A word at an edge, or any.
fn operand(random: &mut Random) -> u32 {
    const EDGES: [u32; 12] = [
        0,
        1,
        0x7fff_ffff,
        0x8000_0000,
        0xffff_ffff,
        0x7fff,
        0x8000,
        0x3f80_0000,
        0x7f80_0000,
        0x7fc0_0001,
        0x3ff0_0000,
        0x4000_0000,
    ];
    if random.below(3) == 0 {
        EDGES[random.below(12) as usize]
    } else {
        random.next() as u32
    }
}

/// A register that may be written: none of the frame.
fn target(random: &mut Random) -> u32 {
    loop {
        let register = random.below(32) as u32;
        if !matches!(register, 5..=7 | 14 | 30) {
            return register;
        }
    }
}

fn source(random: &mut Random) -> u32 {
    random.below(32) as u32
}

fn second(random: &mut Random) -> Second {
    if random.below(2) == 0 {
        Second::Register(source(random))
    } else {
        Second::Number(random.below(8192) as i32 - 4096)
    }
}

/// A place in the scratch area, in steps.
fn place(random: &mut Random, step: u32) -> Second {
    Second::Number((random.below(u64::from(4096 / step)) as u32 * step) as i32)
}

/// One that neither branches nor changes the window: what may stand anywhere, delay slots too.
fn simple(random: &mut Random) -> u32 {
    match random.below(20) {
        0..=6 => {
            // add to xnor, addx, subx, with and without cc; multiplied; tagged
            const ADDS: [u32; 28] = [
                0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x0c, 0x10, 0x11, 0x12, 0x13,
                0x14, 0x15, 0x16, 0x17, 0x18, 0x1c, 0x0a, 0x0b, 0x1a, 0x1b, 0x20, 0x21, 0x24, 0x24,
            ];
            let op3 = ADDS[random.below(28) as usize];
            alu(op3, target(random), source(random), second(random))
        }
        7 => {
            // shifts
            let op3 = 0x25 + random.below(3) as u32;
            let by = if random.below(2) == 0 {
                Second::Register(source(random))
            } else {
                Second::Number(random.below(32) as i32)
            };
            alu(op3, target(random), source(random), by)
        }
        8 => {
            // divisions, some by 0, and tagged ones that trap
            const TRAPPING: [u32; 6] = [0x0e, 0x0f, 0x1e, 0x1f, 0x22, 0x23];
            let op3 = TRAPPING[random.below(6) as usize];
            alu(op3, target(random), source(random), second(random))
        }
        9 => match random.below(3) {
            0 => alu(0x28, target(random), 0, Second::Register(0)), // rd %y
            1 => alu(0x30, G0, source(random), second(random)),     // wr %y
            _ => sethi(target(random), random.next() as u32),
        },
        10..=12 => {
            // loads: ld, ldub, lduh, ldsb, ldsh
            const LOADS: [(u32, u32); 5] = [(0x00, 4), (0x01, 1), (0x02, 2), (0x09, 1), (0x0a, 2)];
            let (op3, step) = LOADS[random.below(5) as usize];
            memory(op3, target(random), SCRATCH_REGISTER, place(random, step))
        }
        13 | 14 => {
            const STORES: [(u32, u32); 3] = [(0x04, 4), (0x05, 1), (0x06, 2)];
            let (op3, step) = STORES[random.below(3) as usize];
            memory(op3, source(random), SCRATCH_REGISTER, place(random, step))
        }
        15 => match random.below(5) {
            0 => memory(0x0d, target(random), SCRATCH_REGISTER, place(random, 1)), // ldstub
            1 => memory(0x0f, target(random), SCRATCH_REGISTER, place(random, 4)), // swap
            2 => memory(
                0x07,
                source(random) & !1,
                SCRATCH_REGISTER,
                place(random, 8),
            ), // std
            3 => {
                // casa at the scratch area's first word, user data
                let word = memory(0x3c, target(random), SCRATCH_REGISTER, Second::Register(0));
                word | 0x0a << 5 | source(random)
            }
            _ => {
                // ldd to a pair outside the frame
                let pair = [2, 8, 10, 12, 16, 18, 20, 22, 24, 26, 28][random.below(11) as usize];
                memory(0x03, pair, SCRATCH_REGISTER, place(random, 8))
            }
        },
        16 => {
            // loads and stores of floats: ldf, lddf, stf, stdf
            const FLOATS: [(u32, u32); 4] = [(0x20, 4), (0x23, 8), (0x24, 4), (0x27, 8)];
            let (op3, step) = FLOATS[random.below(4) as usize];
            let register = random.below(32) as u32 & !(step / 8);
            memory(op3, register, SCRATCH_REGISTER, place(random, step))
        }
        _ => floating(random),
    }
}

fn floating(random: &mut Random) -> u32 {
    let mut any = |double: bool| random.below(32) as u32 & !u32::from(double);
    let (one, two, three) = (any(true), any(true), any(true));
    let odd = any(false) & 1;
    match random.below(8) {
        0..=2 => {
            let opf = [0x41, 0x45, 0x49, 0x4d][random.below(4) as usize];
            float(0x34, one | odd, two, opf, three | odd)
        }
        3 | 4 => {
            let opf = [0x42, 0x46, 0x4a, 0x4e][random.below(4) as usize];
            float(0x34, one, two, opf, three)
        }
        5 => {
            // moves, square roots and conversions: single to single, then the others
            let opf = [
                0x01, 0x05, 0x09, 0x29, 0xc4, 0xd1, 0x2a, 0xc6, 0xc8, 0xc9, 0xd2,
            ];
            float(0x34, one, 0, opf[random.below(11) as usize], two)
        }
        6 => float(0x34, one, two | odd, 0x69, three), // fsmuld
        _ => {
            let opf = [0x51, 0x52, 0x55, 0x56][random.below(4) as usize];
            float(0x35, 0, one, opf, two)
        }
    }
}

/// A few words: most times one, else a branch with what it may skip, a change of window, or a trap.
fn block(code: &mut Code, random: &mut Random, depth: &mut u32) {
    match random.below(24) {
        0 | 1 => {
            // A branch forward, over up to six.
            let over = random.below(6) as u32;
            code.word(branch(
                random.below(16) as u32,
                random.below(2) == 0,
                over + 2,
            ));
            for _ in 0..=over {
                code.word(simple(random));
            }
        }
        2 => {
            // By the floats' condition, behind a compare and one between.
            let over = random.below(4) as u32;
            let opf = [0x51, 0x52][random.below(2) as usize];
            let (one, two) = (random.below(16) as u32 * 2, random.below(16) as u32 * 2);
            code.word(float(0x35, 0, one, opf, two));
            code.nop();
            let annul = u32::from(random.below(2) == 0);
            code.word(annul << 29 | (random.below(16) as u32) << 25 | 6 << 22 | (over + 2));
            for _ in 0..=over {
                code.word(simple(random));
            }
        }
        3 if *depth < 40 => {
            *depth += 1;
            code.word(alu(0x3c, SP, SP, Second::Number(-96)));
        }
        4 if *depth > 0 => {
            *depth -= 1;
            code.word(alu(0x3d, target(random), source(random), second(random)));
        }
        5 => {
            // A trap, if its condition holds, to be skipped.
            let condition = random.below(16) as u32;
            let number = 16 + random.below(100) as i32;
            code.word(alu(0x3a, condition, G0, Second::Number(number)));
        }
        6 => match random.below(4) {
            0 => code.word(random.below(1 << 22) as u32), // unimp
            1 => code.word(alu(0x2d, 1, 1, Second::Register(1))), // no instruction of V8
            2 => {
                // Misaligned, each way.
                let op3 = [
                    0x00, 0x02, 0x03, 0x04, 0x06, 0x07, 0x0a, 0x0f, 0x20, 0x23, 0x24, 0x27,
                ];
                let op3 = op3[random.below(12) as usize];
                let odd = Second::Number(random.below(500) as i32 * 8 + 1);
                code.word(memory(op3, 2, SCRATCH_REGISTER, odd));
            }
            _ => code.word(alu(0x36, 1, 1, Second::Register(1))), // cpop1
        },
        7 => {
            // call and a jump behind it, by the register that call wrote.
            code.word(1 << 30 | 2);
            code.word(simple_keeping_o7(random));
            code.word(alu(0x38, 1, 15, Second::Number(16))); // jmpl %o7 + 16, %g1
            code.nop();
        }
        _ => code.word(simple(random)),
    }
}

/// One that leaves %o7: a nop unless another is found.
fn simple_keeping_o7(random: &mut Random) -> u32 {
    let word = simple(random);
    let op = word >> 30;
    let writes_o7 = word >> 25 & 31 == 15;
    let traps = op == 2 && matches!(word >> 19 & 63, 0x0e | 0x0f | 0x1e | 0x1f | 0x22 | 0x23);
    let pair = op == 3 && word >> 25 & 30 == 14;
    if writes_o7 || traps || pair {
        NOP
    } else {
        word
    }
}
