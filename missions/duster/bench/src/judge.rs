//! What was wrong, beside the bits that had flipped by then: whether one of them explains it.
//!
//! A packet that came as it was acquired is of its time; one that came out of the store is of the time that its header tells
//! within its acquisition, and of the time at which it was sent, too.
//!
//! *Invariant:* what no flip explains is counted as unexplained, and told.

use metes_duster_protocol::definitions::Event;

use crate::hits::{Hits, Map, Time, Why};
use crate::science::Wrong;

/// Wrong packets of a kind that are told in words.
const TOLD: usize = 8;
/// Samples of a packet.
const SAMPLES: u64 = 384;

/// Wrong packets by what explains them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Verdicts {
    /// A bit that flipped in code or constants, before the unit had to have found it.
    pub image: u64,
    /// A bit that flipped in data, since the last reset.
    pub data: u64,
    /// A bit that flipped in a partition.
    pub partition: u64,
    /// Nothing.
    pub unexplained: u64,
}

/// An acquisition or sweep, as events told of it.
#[derive(Clone, Copy, Debug)]
struct Acquisition {
    number: u16,
    boot: usize,
    epoch: u64,
    began: u64,
    ended: Option<u64>,
}

/// Mission time at the unit: a cycle, resets before it, the cycle at which the unit's own time began.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// See [`Now`].
    pub at: u64,
    /// See [`Now`].
    pub boot: usize,
    /// See [`Now`].
    pub epoch: u64,
    /// Cycles of a second.
    pub frequency: u64,
}

/// Who judges.
#[derive(Clone, Debug, Default)]
pub struct Judge {
    acquisitions: Vec<Acquisition>,
    /// What was found so far.
    pub verdicts: Verdicts,
    /// The first wrong packets of each kind, in words.
    pub told: Vec<String>,
    /// Losses of stored samples that nothing explains.
    losses: usize,
}

impl Judge {
    /// An event has come.
    pub fn follow(&mut self, event: &Event, now: Now) {
        match *event {
            Event::AcquisitionStarted { acquisition } => self.acquisitions.push(Acquisition {
                number: acquisition,
                boot: now.boot,
                epoch: now.epoch,
                began: now.at,
                ended: None,
            }),
            Event::AcquisitionFinished { acquisition, .. }
            | Event::SweepFinished { acquisition, .. } => {
                if let Some(own) = self.acquisitions.last_mut()
                    && own.number == acquisition
                {
                    own.ended.get_or_insert(now.at);
                }
            }
            _ => {}
        }
    }

    /// The unit was reset: what was under way has ended.
    pub fn reset(&mut self, at: u64) {
        if let Some(last) = self.acquisitions.last_mut() {
            last.ended.get_or_insert(at);
        }
    }

    /// The time of an acquisition; `sample` microseconds of the unit's own time, where that is known.
    fn time_of(&self, number: u16, sample: Option<u64>, now: Now) -> Option<Time> {
        let all = self.acquisitions.iter().rev();
        let own = { all }.find(|own| own.number == number)?;
        let to = own.ended.unwrap_or(now.at);
        let at = sample.map(|sample| own.epoch + sample.saturating_mul(now.frequency / 1_000_000));
        let at = at.filter(|at| (own.began..=to).contains(at));
        Some(Time {
            boot: own.boot,
            from: at.unwrap_or(own.began),
            to,
        })
    }

    /// Judges a packet that has come now.
    pub fn judge(&mut self, wrong: &Wrong, hits: &mut Hits, map: &Map, now: Now) {
        let here = Time {
            boot: now.boot,
            from: now.at,
            to: now.at,
        };
        let header = wrong.header.filter(|_| wrong.stored);
        let then = header.and_then(|it| self.time_of(it.acquisition, Some(it.time), now));
        let times = then.into_iter().chain([here]);
        let why = { times }.find_map(|time| hits.explain(map, time, 1));
        let verdicts = &mut self.verdicts;
        let (count, cause) = match why {
            Some(Why::Image) => (&mut verdicts.image, "a flip in the image explains it"),
            Some(Why::Data) => (&mut verdicts.data, "a flip in data explains it"),
            Some(Why::Partition) => (&mut verdicts.partition, "a flip in a partition explains it"),
            None => (&mut verdicts.unexplained, "nothing explains it"),
        };
        *count += 1;
        if *count <= TOLD as u64 {
            let second = now.at as f64 / now.frequency as f64;
            self.told
                .push(format!("{:.1} s: {}; {cause}", second, wrong.what));
        }
    }

    /// How many of `samples` that the store lost of acquisition `number` nothing explains; those are told by what `what` says
    /// of them.
    pub fn lost(
        &mut self,
        number: u16,
        samples: u64,
        what: &dyn Fn() -> String,
        hits: &mut Hits,
        map: &Map,
        now: Now,
    ) -> u64 {
        let here = Time {
            boot: now.boot,
            from: now.at,
            to: now.at,
        };
        let times = self.time_of(number, None, now).into_iter().chain([here]);
        let blocks = samples.div_ceil(SAMPLES);
        let why = { times }.find_map(|time| hits.explain(map, time, blocks));
        if why.is_some() {
            return 0;
        }
        self.losses += 1;
        if self.losses <= TOLD {
            let second = now.at as f64 / now.frequency as f64;
            self.told.push(format!("{second:.1} s: {}", what()));
        }
        samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hits::Part;
    use metes_duster_protocol::ScienceHeader;
    use metes_duster_protocol::definitions::{Probe, ScienceKind};
    use metes_duster_system::System;
    use metes_leon3::Image;

    const SECOND: u64 = 100_000_000;

    fn now(second: u64, boot: usize) -> Now {
        Now {
            at: second * SECOND,
            boot,
            epoch: 10 * SECOND,
            frequency: SECOND,
        }
    }

    /// Of acquisition 7, acquired in the unit's second `second`.
    fn wrong(stored: bool, second: u64) -> Wrong {
        Wrong {
            header: Some(ScienceHeader {
                kind: ScienceKind::Samples,
                probe: Probe::Dust,
                acquisition: 7,
                rate: 1000,
                first: 0,
                time: second * 1_000_000,
                count: 384,
            }),
            stored,
            what: String::new(),
        }
    }

    #[test]
    fn a_stored_packet_is_of_the_time_of_its_samples() {
        // No symbols, so a recovery of passes over nothing: the watchdog and the slack.
        let map = Map::new(&System::of_mission(), &Image::of_words(0x4000_0000, &[0]));
        let mut hits = Hits::default();
        hits.add(70 * SECOND, 0, Part::Image);
        let mut judge = Judge::default();
        let acquisition = 7;
        judge.follow(&Event::AcquisitionStarted { acquisition }, now(20, 0));
        // As it was acquired: until the unit must have been reset, and no longer.
        judge.judge(&wrong(false, 50), &mut hits, &map, now(69, 0));
        judge.judge(&wrong(false, 62), &mut hits, &map, now(72, 0));
        judge.judge(&wrong(false, 90), &mut hits, &map, now(100, 0));
        judge.reset(110 * SECOND);
        let verdicts = |image, unexplained| Verdicts {
            image,
            unexplained,
            ..Verdicts::default()
        };
        assert_eq!(judge.verdicts, verdicts(1, 2));
        // Out of the store, after the reset: by the time at which it was acquired, 10 s of epoch before.
        judge.judge(&wrong(true, 62), &mut hits, &map, now(200, 1));
        assert_eq!(judge.verdicts, verdicts(2, 2));
        judge.judge(&wrong(true, 90), &mut hits, &map, now(200, 1));
        assert_eq!(judge.verdicts, verdicts(2, 3));
        // A time outside of its acquisition tells nothing, but that it was within.
        judge.judge(&wrong(true, 1000), &mut hits, &map, now(200, 1));
        assert_eq!(judge.verdicts, verdicts(3, 3));
        assert_eq!(judge.told.len(), 6);
    }

    #[test]
    fn samples_are_lost_unless_a_hit_of_their_time_explains_it() {
        let map = Map::new(&System::of_mission(), &Image::of_words(0x4000_0000, &[0]));
        let mut judge = Judge::default();
        for (acquisition, second) in [(7, 20), (8, 60)] {
            judge.follow(&Event::AcquisitionStarted { acquisition }, now(second, 0));
            let records = 1;
            let over = Event::AcquisitionFinished {
                acquisition,
                records,
            };
            judge.follow(&over, now(second + 30, 0));
        }
        let mut hits = Hits::default();
        hits.add(70 * SECOND, 0, Part::Partition { blocks: 3 });
        let mut lost = |number, samples| {
            judge.lost(
                number,
                samples,
                &|| format!("{samples} of {number}"),
                &mut hits,
                &map,
                now(200, 1),
            )
        };
        assert_eq!(lost(7, 384), 384);
        assert_eq!(lost(8, 4 * 384), 4 * 384);
        assert_eq!(lost(8, 385), 0);
        assert_eq!((lost(8, 385), lost(8, 384)), (385, 0));
        assert_eq!(judge.told.len(), 3);
    }
}
