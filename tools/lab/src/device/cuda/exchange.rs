//! Blocks that are exchanged: every allocation and free of a workload, one after another.
//!
//! Invariant: allocators take turns round by round, each alone on the device, so that ratios
//! compare what ran under the same conditions.

use super::super::bench::Effort;
use super::super::workload::{Request, Workload};
use super::allocators::{Allocator, KINDS, Kind};
use super::driver::Device;
use super::meter::{Distribution, Meter};
use super::{ExchangeFigures, Measurement, Ratio};

/// What one round of an allocator gave.
struct Round {
    allocate: Vec<u64>,
    free: Vec<u64>,
    /// Of the device, when most bytes are live.
    bytes: u64,
    pages: Option<[u64; 2]>,
}

impl Round {
    /// A call in the mean.
    fn mean(&self) -> f64 {
        let calls = self.allocate.len() + self.free.len();
        let sum: u64 = self.allocate.iter().chain(&self.free).sum();
        sum as f64 / calls as f64
    }
}

/// Every allocator on a workload; `tell` is told what is done.
pub(super) fn exchange(
    device: &Device,
    workload: &Workload,
    effort: Effort,
    tell: &dyn Fn(&str),
) -> Vec<Measurement<ExchangeFigures>> {
    let mut rounds: Vec<Result<Vec<Round>, String>> =
        KINDS.iter().map(|_| Ok(Vec::new())).collect();
    let count = super::rounds(effort);
    for number in 1..=count {
        for (kind, rounds) in KINDS.iter().zip(&mut rounds) {
            let Ok(done) = rounds else { continue };
            tell(&format!(
                "{}: {}, round {number} of {count}",
                workload.name, kind.name
            ));
            match round(device, kind, workload) {
                Ok(round) => done.push(round),
                Err(why) => *rounds = Err(why),
            }
        }
    }
    let first: Vec<f64> = match &rounds[0] {
        Ok(rounds) => rounds.iter().map(Round::mean).collect(),
        Err(_) => Vec::new(),
    };
    let meter = Meter::of(device);
    KINDS
        .iter()
        .zip(rounds)
        .map(|(kind, rounds)| {
            let figures = rounds.map(|rounds| figures(&meter, workload, &rounds, &first));
            Measurement::of(kind.name, kind.about, figures)
        })
        .collect()
}

fn figures(meter: &Meter, workload: &Workload, rounds: &[Round], first: &[f64]) -> ExchangeFigures {
    let all = |of: fn(&Round) -> &Vec<u64>| -> Vec<u64> {
        rounds
            .iter()
            .flat_map(|round| of(round).iter().copied())
            .collect()
    };
    let allocate = Distribution::of(all(|round| &round.allocate));
    let free = Distribution::of(all(|round| &round.free));
    let ratios = rounds.iter().map(Round::mean).zip(first);
    let pages = rounds.last().and_then(|round| round.pages);
    let bytes = rounds.last().map_or(0, |round| round.bytes);
    let timed = meter.is_clock();
    ExchangeFigures {
        rounds: rounds.len(),
        allocate: meter.seconds(allocate),
        free: meter.seconds(free),
        allocate_calls: meter.calls(allocate),
        free_calls: meter.calls(free),
        ratio: Ratio::of(ratios.map(|(mean, first)| mean / first).collect()).filter(|_| timed),
        memory_ratio: timed.then(|| bytes as f64 / workload.peak as f64),
        pages_mapped: pages.map(|[mapped, _]| mapped),
        pages_moved: pages.map(|[_, moved]| moved),
    }
}

/// One allocator, made anew, serves the whole workload.
fn round(device: &Device, kind: &Kind, workload: &Workload) -> Result<Round, String> {
    let before = device.memory().map_err(|error| error.to_string())?.0;
    let mut allocator = (kind.make)(device, workload).map_err(|error| error.to_string())?;
    let allocator: &mut dyn Allocator = &mut *allocator;
    let meter = Meter::of(device);
    let peak = at_peak(workload);
    let mut found = Round {
        allocate: Vec::with_capacity(workload.requests.len()),
        free: Vec::with_capacity(workload.requests.len()),
        bytes: 0,
        pages: None,
    };
    for (index, request) in workload.requests.iter().enumerate() {
        match *request {
            Request::Allocate { slot, bytes } => {
                let begin = meter.read();
                let served = allocator.allocate(slot as usize, bytes);
                found.allocate.push(meter.since(begin));
                if !served {
                    let free = device.memory().map_or(0, |(free, _)| free);
                    return Err(format!(
                        "request {index} of {bytes} bytes was refused: {free} bytes of the device \
                         are free, {} live at the peak",
                        workload.peak
                    ));
                }
            }
            Request::Free { slot } => {
                let begin = meter.read();
                allocator.free(slot as usize);
                found.free.push(meter.since(begin));
            }
        }
        if index == peak {
            let now = device.memory().map_err(|error| error.to_string())?.0;
            found.bytes = before.saturating_sub(now);
        }
    }
    found.pages = allocator.pages();
    device.synchronize().map_err(|error| error.to_string())?;
    Ok(found)
}

/// The first request after which most bytes are live.
fn at_peak(workload: &Workload) -> usize {
    let mut held = vec![0; workload.slots];
    let mut live = 0;
    workload
        .requests
        .iter()
        .position(|request| {
            match *request {
                Request::Allocate { slot, bytes } => {
                    held[slot as usize] = bytes;
                    live += bytes;
                }
                Request::Free { slot } => live -= std::mem::take(&mut held[slot as usize]),
            }
            live == workload.peak
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::super::workload::uniform;
    use super::*;

    #[test]
    fn the_peak_is_where_most_is_live() {
        let workload = uniform(10, 500, 7);
        let peak = at_peak(&workload);
        let live = |until: usize| -> u64 {
            let mut held = vec![0; workload.slots];
            for request in &workload.requests[..=until] {
                match *request {
                    Request::Allocate { slot, bytes } => held[slot as usize] = bytes,
                    Request::Free { slot } => held[slot as usize] = 0,
                }
            }
            held.iter().sum()
        };
        assert_eq!(live(peak), workload.peak);
        assert!((0..peak).all(|earlier| live(earlier) < workload.peak));
    }
}
