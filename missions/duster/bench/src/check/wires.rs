//! SPI and serial lines: which clocks the dividers reach, and whether what must get through does.
//!
//! SPICTRL divides the system's clock by 2 or 4 times 1 to 16, or that times 16; APBUART by 8 times 1 to 4096. A serial line tolerates
//! 2 % of error. Each millisecond an SPI controller moves a set of frames of 24 bits by itself.
//!
//! *Invariant:* clocks and loads that hold here are reached by the registers of the silicon.

use metes_duster_system::{Bus, Line, System, spi_clock, uart_scaler};

use super::{Row, Unit};

/// Millionths by which a baud rate may be off.
const TOLERANCE: u64 = 20_000;
/// Bits of a frame on SPI, and of a byte on a line.
const FRAME: u64 = 24;
const BYTE: u64 = 10;
/// Nanoseconds from a set to the next.
pub(super) const SET: u64 = 1_000_000;
/// Bytes that a UART takes before its FIFO of 32 is half empty again.
const HALF: u64 = 16;

/// Nanoseconds that a set takes on a bus; none if no divider gives its clock.
pub(super) fn set_time(system: &System, bus: &Bus) -> Option<u64> {
    let clock = spi_clock(system.platform.frequency, bus.clock)?;
    let cycles = bus.frames as u64 * FRAME * u64::from(clock.cycles);
    Some(super::code::nanoseconds(cycles, system.platform.frequency))
}

/// Bits a second that a line really has.
pub(super) fn baud(system: &System, line: &Line) -> f64 {
    uart_scaler(system.platform.frequency, line.baud).1
}

pub(super) fn rows(system: &System) -> Vec<Row> {
    let mut rows = Vec::new();
    for bus in &system.buses {
        rows.extend(of_bus(system, bus));
    }
    for line in &system.lines {
        rows.extend(of_line(system, line));
    }
    rows
}

fn of_bus(system: &System, bus: &Bus) -> Vec<Row> {
    let subject = || format!("bus {}", bus.name);
    let frequency = u64::from(system.platform.frequency);
    let reached = spi_clock(system.platform.frequency, bus.clock)
        .map(|clock| frequency / u64::from(clock.cycles));
    let range = u64::from(bus.clock_min)..=u64::from(bus.clock_max);
    let clock = Row {
        holds: reached.is_some_and(|clock| range.contains(&clock)),
        ..Row::most(
            subject(),
            "clock",
            Unit::BitsPerSecond,
            reached,
            u64::from(bus.clock_max),
        )
    };
    let feasible = feasible(system.platform.frequency, &range);
    let clock = clock.note(format!(
        "at least {}; dividers reach {feasible}",
        bus.clock_min
    ));
    let time = set_time(system, bus);
    let share = time.map(|time| (time * 1_000_000).div_ceil(SET));
    let share = Row::most(subject(), "utilisation", Unit::Millionths, share, 1_000_000);
    let share = share.note(format!("a set of {} frames each millisecond", bus.frames));
    // What a set carries must keep up with the converter.
    let samples = Row::most(
        subject(),
        "samples a second",
        Unit::Items,
        Some(u64::from(bus.rate)),
        bus.frames as u64 * 1000,
    );
    let samples = samples.note("the limit is what sets carry");
    vec![clock, share, samples]
}

/// The clocks in a range that dividers reach, the fastest first, in words.
fn feasible(frequency: u32, range: &std::ops::RangeInclusive<u64>) -> String {
    let mut cycles: Vec<u64> = Vec::new();
    for factor in [2, 4, 32, 64] {
        cycles.extend((1..=16).map(|modulus| factor * modulus));
    }
    cycles.sort_unstable();
    cycles.dedup();
    let frequency = u64::from(frequency);
    // Within the range exactly, not after rounding.
    let within =
        |cycles: &u64| range.start() * cycles <= frequency && frequency <= range.end() * cycles;
    let clocks: Vec<_> = cycles
        .into_iter()
        .filter(within)
        .map(|cycles| (frequency / cycles).to_string())
        .collect();
    match clocks.len() {
        0 => "none there".to_owned(),
        1..=8 => clocks.join(", "),
        _ => format!(
            "{} of {} there, from {} to {}",
            clocks.len(),
            56,
            clocks[0],
            clocks[clocks.len() - 1]
        ),
    }
}

fn of_line(system: &System, line: &Line) -> Vec<Row> {
    let subject = || format!("line {}", line.name);
    let (scaler, real) = uart_scaler(system.platform.frequency, line.baud);
    let wanted = u64::from(line.baud) * 8 * u64::from(scaler + 1);
    let frequency = u64::from(system.platform.frequency);
    let off = (frequency.abs_diff(wanted) * 1_000_000).div_ceil(wanted);
    let error = Row::most(
        subject(),
        "error of its clock",
        Unit::Millionths,
        Some(off),
        TOLERANCE,
    );
    let error = error.note(format!(
        "{} wanted, divisor {} gives {real:.0}",
        line.baud,
        scaler + 1
    ));
    let load = system.load(line);
    // load * BYTE / (frequency / (8 (scaler + 1)))
    let needed = u128::from(load) * u128::from(BYTE * 8 * u64::from(scaler + 1)) * 1_000_000;
    let share = u64::try_from(needed.div_ceil(u128::from(frequency))).unwrap_or(u64::MAX);
    let share = Row::most(
        subject(),
        "utilisation",
        Unit::Millionths,
        Some(share),
        1_000_000,
    );
    let note = format!("{load} bytes a second, 10 bits each, of {real:.0} bits");
    let share = match share.holds {
        true => share.note(note),
        false => share.note(format!(
            "{note}; the data need {} baud at least",
            load * BYTE
        )),
    };
    let mut rows = vec![error, share];
    if line.uart == 0 {
        let declared = system
            .interrupts
            .iter()
            .filter(|it| it.name.starts_with("line"));
        for declared in declared {
            // 16 bytes take this long at least, whatever is declared.
            let between = (HALF * BYTE * 8 * u64::from(scaler + 1) * 1_000_000_000) / frequency;
            let row = Row::most(
                subject(),
                "declared time between interrupts",
                Unit::Nanoseconds,
                Some(declared.period * 1000),
                between,
            );
            rows.push(row.note(format!("{HALF} bytes of a FIFO of 32")));
        }
    }
    rows
}
