//! Page operations replayed: what each of them meets, and what each read gives.
//!
//! Invariant: a page that is touched for the first time reads 0, whoever had its frame before.

use metes_pages::{
    Access, Domain, Error, Frames, Index, Pages12, Pages16, Pages20, Pages24, Space, Tables, zeroed,
};
use serde::Serialize;

use crate::operations::Operation;

/// What an operation met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was done.
    Ok,
    /// It was done after a page fault: the first touch of its page.
    Fault,
    /// No allocated region is there, or for `u`: begins there.
    Unmapped,
    /// The region does not allow it.
    Rights,
    /// Pages of the region are allocated already, or lie beyond the space.
    Overlap,
    /// A page fault for which there was no frame.
    NoFrame,
}

/// What a replay saw.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Replayed {
    /// What each operation met.
    pub results: Vec<Outcome>,
    /// What each read gave; none for other operations, and where a read was refused.
    pub values: Vec<Option<u64>>,
    /// Regions at the end.
    pub regions: u32,
    /// Frames in use at the end.
    pub frames_used: u32,
    /// The most frames in use.
    pub frames_peak: u32,
    /// Page faults that were served.
    pub faults: u64,
}

/// A size that no space has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a space has 1 to {} pages, and 1 to {} frames: {pages} and {frames} do not fit", 1 << 24, 1 << 24)]
pub struct NoSpace {
    /// Pages that were asked for.
    pub pages: u32,
    /// Frames that were asked for.
    pub frames: u32,
}

/// Replays operations on a space of `pages` pages and `frames` frames. O(1) an operation.
///
/// # Errors
/// [`NoSpace`] for sizes beyond 2^24, or zero.
pub fn replay(operations: &[Operation], pages: u32, frames: u32) -> Result<Replayed, NoSpace> {
    const LARGEST: u32 = 1 << 24;
    if !(1..=LARGEST).contains(&pages) || !(1..=LARGEST).contains(&frames) {
        return Err(NoSpace { pages, frames });
    }
    let on = match pages {
        ..=0x1000 => on(&mut *zeroed::<Pages12>(), operations, pages, frames),
        0x1001..=0x1_0000 => on(&mut *zeroed::<Pages16>(), operations, pages, frames),
        0x1_0001..=0x10_0000 => on(&mut *zeroed::<Pages20>(), operations, pages, frames),
        _ => on(&mut *zeroed::<Pages24>(), operations, pages, frames),
    };
    Ok(on)
}

fn on<T: Tables, I: Index>(
    space: &mut Space<T, I>,
    operations: &[Operation],
    pages: u32,
    frames: u32,
) -> Replayed {
    space
        .open(pages, Domain::FIRST)
        .expect("a size that was chosen for it");
    let links = vec![0; frames as usize].into_boxed_slice();
    let mut frames = Frames::new(links, frames).expect("as many links");
    // What the one word of each frame holds that a replay writes.
    let mut memory = vec![0; frames.total() as usize];
    let mut replayed = Replayed::default();
    for &operation in operations {
        let mut value = None;
        let mut touch = |page, access| -> Result<(Outcome, u32), Error> {
            match space.access(page, access) {
                Err(Error::Absent) => {
                    let mapped = space.map_page(page, &mut frames)?;
                    memory[mapped.frame as usize] = 0;
                    Ok((Outcome::Fault, mapped.frame))
                }
                other => other.map(|frame| (Outcome::Ok, frame)),
            }
        };
        let result = match operation {
            Operation::Map {
                start,
                count,
                rights,
            } => space.map_region(start, count, rights).map(|()| Outcome::Ok),
            Operation::Unmap(start) => space.unmap_region(start, &mut frames).map(|()| Outcome::Ok),
            Operation::Read(page) => touch(page, Access::Read).map(|(outcome, frame)| {
                value = Some(memory[frame as usize]);
                outcome
            }),
            Operation::Write { page, value } => {
                touch(page, Access::Write).map(|(outcome, frame)| {
                    memory[frame as usize] = value;
                    outcome
                })
            }
        };
        let outcome = result.unwrap_or_else(|error| refusal(operation, error));
        replayed.faults += u64::from(outcome == Outcome::Fault);
        replayed.frames_peak = replayed.frames_peak.max(frames.used());
        replayed.results.push(outcome);
        replayed.values.push(value);
    }
    replayed.regions = space.regions();
    replayed.frames_used = frames.used();
    replayed
}

/// How a refusal is called in a replay.
fn refusal(operation: Operation, error: Error) -> Outcome {
    match error {
        Error::Rights => Outcome::Rights,
        Error::NoFrame => Outcome::NoFrame,
        Error::Overlap => Outcome::Overlap,
        Error::Beyond if matches!(operation, Operation::Map { .. }) => Outcome::Overlap,
        Error::Beyond | Error::Unmapped => Outcome::Unmapped,
        Error::Empty | Error::Open | Error::Absent | Error::Present => {
            unreachable!("regions that were read have pages, and pages are mapped when absent")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::read;

    #[test]
    fn each_outcome_is_met_and_frames_come_back_zeroed() {
        use Outcome::{Fault, NoFrame, Ok, Overlap, Rights, Unmapped};
        let text = "m,2,4,rw\nw,3,7\nr,3\nr,4\nr,5\nm,5,1,r\nu,3\nu,2\nu,2\nr,3\nm,0,3,r\nr,2\nw,2,1\nm,7,2,r\nr,8";
        let replayed = replay(&read(text.as_bytes()).unwrap(), 8, 2).unwrap();
        let expected = [
            Ok, Fault, Ok, Fault, NoFrame, Overlap, Unmapped, Ok, Unmapped, Unmapped, Ok, Fault,
            Rights, Overlap, Unmapped,
        ];
        assert_eq!(replayed.results, expected);
        let reads: Vec<u64> = replayed.values.iter().flatten().copied().collect();
        assert_eq!(reads, [7, 0, 0]);
        assert_eq!((replayed.regions, replayed.frames_used), (1, 1));
        assert_eq!((replayed.frames_peak, replayed.faults), (2, 3));
        assert_eq!(
            replay(&[], 0, 1),
            Err(NoSpace {
                pages: 0,
                frames: 1
            })
        );
    }
}
