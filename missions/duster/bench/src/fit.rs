//! Does it fit: the paper's baseline and the real-time memory management unit on the devices of its tables.
//!
//! Data stand in `missions/duster/fit`: devices with what the paper's tables give of them, designs with their cells, and
//! where the paper's own arithmetic does not hold. Placing, routing and timing are out of scope.
//!
//! *Invariant:* shares are quotients of integers, so a verdict never depends on rounding; a resource that the tables do not give of a
//! device has no verdict and is said to be missing.

use serde::{Deserialize, Serialize};

/// From this share of a device on it is tight, in percent.
const TIGHT: u64 = 70;

const DEVICES: &str = include_str!("../../fit/devices.toml");
const DESIGNS: &str = include_str!("../../fit/designs.toml");

/// Kinds of cells and pins, as they are called.
const RESOURCES: [&str; 5] = ["LUT", "flip-flop", "block RAM", "DSP", "I/O"];

/// Numbers of cells and pins; none where a source tells none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cells {
    lut: Option<u64>,
    flip_flop: Option<u64>,
    block_ram: Option<u64>,
    dsp: Option<u64>,
    io: Option<u64>,
}

impl Cells {
    fn all(&self) -> [Option<u64>; 5] {
        [self.lut, self.flip_flop, self.block_ram, self.dsp, self.io]
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Devices {
    device: Vec<DeviceRow>,
    family: Vec<Family>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeviceRow {
    name: String,
    vendor: String,
    family: String,
    source: String,
    lut: Option<u64>,
    flip_flop: Option<u64>,
    block_ram: Option<u64>,
    dsp: Option<u64>,
    io: Option<u64>,
}

impl DeviceRow {
    fn cells(&self) -> Cells {
        Cells {
            lut: self.lut,
            flip_flop: self.flip_flop,
            block_ram: self.block_ram,
            dsp: self.dsp,
            io: self.io,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Family {
    name: String,
    estimate: bool,
    why: String,
    lut: [u64; 2],
    flip_flop: [u64; 2],
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Designs {
    design: Vec<Design>,
    correction: Vec<CorrectionRow>,
    remark: Vec<Correction>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Design {
    name: String,
    #[expect(dead_code, reason = "for the file's reader")]
    source: String,
    copies: u64,
    #[serde(default)]
    any: Option<Cells>,
    #[serde(default)]
    ultrascale: Option<Cells>,
    #[serde(default)]
    nanoxplore: Option<Cells>,
    #[serde(default)]
    rtg4: Option<Cells>,
    #[serde(default)]
    axcelerator: Option<Cells>,
}

impl Design {
    fn of_family(&self, family: &str) -> Option<Cells> {
        match family {
            "ultrascale" => self.ultrascale,
            "nanoxplore" => self.nanoxplore,
            "rtg4" => self.rtg4,
            _ => self.axcelerator,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CorrectionRow {
    row: String,
    printed: String,
    part: u64,
    of: u64,
    why: String,
}

/// A place where the paper's figures do not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Correction {
    /// Which figure.
    pub row: String,
    /// What the paper prints.
    pub printed: String,
    /// What it is.
    pub is: String,
    /// Why.
    pub why: String,
}

/// Whether something fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It does.
    Fits,
    /// More than 70 % are taken.
    Tight,
    /// More than there is.
    No,
}

impl Verdict {
    /// The verdict in a word.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Fits => "FITS",
            Verdict::Tight => "TIGHT",
            Verdict::No => "NO",
        }
    }
}

/// One resource of a device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Usage {
    /// What.
    pub resource: &'static str,
    /// What the baseline takes of it.
    pub baseline: u64,
    /// What other designs add.
    pub added: u64,
    /// What the device has; none if the tables do not tell.
    pub capacity: Option<u64>,
    /// Percent that are taken.
    pub percent: Option<f64>,
    /// Whether it fits.
    pub verdict: Option<Verdict>,
    /// Whether the need is an estimate.
    pub estimate: bool,
}

/// What becomes of a device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fit {
    /// Its name.
    pub device: String,
    /// Who makes it.
    pub vendor: String,
    /// Where its capacities are from.
    pub source: String,
    /// Whether all that is told fits.
    pub verdict: Verdict,
    /// The resource of which the greatest share is taken.
    pub limiting: &'static str,
    /// How the baseline was taken for its family.
    pub mapping: String,
    /// Its resources.
    pub resources: Vec<Usage>,
}

/// The whole report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// By device.
    pub devices: Vec<Fit>,
    /// The paper's arithmetic, corrected.
    pub corrections: Vec<Correction>,
    /// What the report does not look at.
    pub assumptions: Vec<String>,
}

/// Percent of `of`, to two digits, rounded half up.
fn percent(part: u64, of: u64) -> f64 {
    let hundredths = (u128::from(part) * 20_000 + u128::from(of)) / (2 * u128::from(of.max(1)));
    hundredths as f64 / 100.0
}

fn verdict(part: u64, of: u64) -> Verdict {
    match (u128::from(part) * 100, u128::from(of) * 100) {
        (part, of) if part > of => Verdict::No,
        (part, of) if part * 100 > of * u128::from(TIGHT) => Verdict::Tight,
        _ => Verdict::Fits,
    }
}

/// The report on all devices, with the designs that are added to the baseline or without.
///
/// # Panics
/// Never: tests read the data of this repository, and there are no other.
#[must_use]
pub fn report(with_added: bool) -> Report {
    let devices: Devices = toml::from_str(DEVICES).expect("devices.toml is as it was tested");
    let designs: Designs = toml::from_str(DESIGNS).expect("designs.toml is as it was tested");
    let fits = devices.device.iter().map(|device| {
        let family = devices
            .family
            .iter()
            .find(|family| family.name == device.family)
            .expect("every device is of a family that is there");
        fit(device, family, &designs.design, with_added)
    });
    let computed = designs.correction.into_iter().map(|row| Correction {
        is: format!(
            "{:.2} % ({} of {})",
            percent(row.part, row.of),
            row.part,
            row.of
        ),
        row: row.row,
        printed: row.printed,
        why: row.why,
    });
    let added = designs.design.iter().filter(|design| design.any.is_none());
    let mut assumptions: Vec<_> = added
        .map(|design| format!("{} x {} beside the baseline", design.copies, design.name))
        .filter(|_| with_added)
        .collect();
    assumptions.extend(
        [
            "counts after mapping: nothing is placed or routed, and there is no clock frequency",
            "the baseline was synthesised for XCKU040 alone; of other families it is an estimate, as is said at each",
            "table 2 gives neither block RAM nor DSP of NG-LARGE, Axcelerator and RTG4: no verdict on these",
        ]
        .map(str::to_owned),
    );
    Report {
        devices: fits.collect(),
        corrections: computed.chain(designs.remark).collect(),
        assumptions,
    }
}

fn fit(device: &DeviceRow, family: &Family, designs: &[Design], with_added: bool) -> Fit {
    let scaled = |cells: u64, [there, here]: [u64; 2]| (cells * there).div_ceil(here);
    let mut baseline = [0; 5];
    let mut added = [0; 5];
    for design in designs {
        let own = match design.any {
            Some(any) => Some(Cells {
                lut: any.lut.map(|cells| scaled(cells, family.lut)),
                flip_flop: any.flip_flop.map(|cells| scaled(cells, family.flip_flop)),
                ..any
            }),
            None if with_added => design.of_family(&family.name),
            None => None,
        };
        let into = if design.any.is_some() {
            &mut baseline
        } else {
            &mut added
        };
        for (sum, cells) in into.iter_mut().zip(own.unwrap_or_default().all()) {
            *sum += cells.unwrap_or(0) * design.copies;
        }
    }
    let capacities = device.cells().all();
    let usage = |(at, resource): (usize, &'static str)| {
        let (need, capacity) = (baseline[at] + added[at], capacities[at]);
        Usage {
            resource,
            baseline: baseline[at],
            added: added[at],
            capacity,
            percent: capacity.map(|of| percent(need, of)),
            verdict: capacity.map(|of| verdict(need, of)),
            // Pins are pins; cells differ by family.
            estimate: family.estimate && resource != "I/O",
        }
    };
    let resources: Vec<_> = RESOURCES.into_iter().enumerate().map(usage).collect();
    let share = |usage: &&Usage| {
        let of = u128::from(usage.capacity.unwrap_or(1).max(1));
        u128::from(usage.baseline + usage.added) * 1_000_000 / of
    };
    let told = || resources.iter().filter(|usage| usage.capacity.is_some());
    Fit {
        verdict: told()
            .filter_map(|usage| usage.verdict)
            .max()
            .unwrap_or(Verdict::Fits),
        limiting: told().max_by_key(share).map_or("", |usage| usage.resource),
        device: device.name.clone(),
        vendor: device.vendor.clone(),
        source: device.source.clone(),
        mapping: family.why.clone(),
        resources,
    }
}

#[cfg(test)]
mod tests;
