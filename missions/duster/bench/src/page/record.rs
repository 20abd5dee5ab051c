//! Samples over time in bounded memory: places that each span some samples, ever more as the record grows.
//!
//! *Invariant:* a place's least and greatest value are those of the samples it stands for, and every sample has a place.

use serde::Serialize;

/// Consecutive samples, by what they span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    at: u64,
    low: i32,
    high: i32,
    samples: u64,
}

/// A probe's samples over time.
#[derive(Clone, Debug)]
pub struct Record {
    places: Vec<Place>,
    /// Most places before two become one.
    most: usize,
    /// Samples of a place that is full.
    together: u64,
}

/// A record as the page has it: columns of the same length.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Columns {
    /// Samples of a full place.
    pub together: u64,
    /// When the first sample of each place was taken, in microseconds since boot; never falls.
    pub at: Vec<u64>,
    /// Least sample of each place.
    pub low: Vec<i32>,
    /// Greatest sample of each place.
    pub high: Vec<i32>,
}

impl Record {
    /// An empty record of at most so many places, two or more.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Record {
            places: Vec::new(),
            most: most.max(2),
            together: 1,
        }
    }

    /// Adds consecutive samples, the first taken at `at` microseconds, the others `period` microseconds apart.
    /// O(samples), amortised.
    pub fn add(&mut self, at: u64, period: f64, samples: impl Iterator<Item = i32>) {
        let mut open = false;
        for (number, sample) in samples.enumerate() {
            let last = self.places.last_mut().filter(|place| {
                // A place goes on over packets, but not over a pause or back in time.
                place.samples < self.together && (open || follows(place, at, period))
            });
            match last {
                Some(place) => {
                    place.low = place.low.min(sample);
                    place.high = place.high.max(sample);
                    place.samples += 1;
                }
                None => self.places.push(Place {
                    at: at + (number as f64 * period) as u64,
                    low: sample,
                    high: sample,
                    samples: 1,
                }),
            }
            open = true;
            if self.places.len() > self.most {
                self.halve();
            }
        }
    }

    fn halve(&mut self) {
        self.places.sort_by_key(|place| place.at);
        self.places = self.places.chunks(2).map(united).collect();
        self.together *= 2;
    }

    /// The record in the order of time. O(places log places).
    #[must_use]
    pub fn columns(&self) -> Columns {
        let mut places = self.places.clone();
        places.sort_by_key(|place| place.at);
        Columns {
            together: self.together,
            at: places.iter().map(|place| place.at).collect(),
            low: places.iter().map(|place| place.low).collect(),
            high: places.iter().map(|place| place.high).collect(),
        }
    }
}

/// Whether a sample at `at` is the next after those of a place, give or take a period.
fn follows(place: &Place, at: u64, period: f64) -> bool {
    let next = place.at as f64 + place.samples as f64 * period;
    (at as f64 - next).abs() <= period.max(1.0)
}

fn united(pair: &[Place]) -> Place {
    let first = pair[0];
    pair[1..].iter().fold(first, |sum, place| Place {
        at: sum.at,
        low: sum.low.min(place.low),
        high: sum.high.max(place.high),
        samples: sum.samples + place.samples,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_record_keeps_its_extremes() {
        let mut record = Record::new(16);
        let samples: Vec<i32> = (0..10_000).map(|k| (k * 7919) % 10_007 - 5000).collect();
        for (number, packet) in samples.chunks(384).enumerate() {
            record.add(number as u64 * 38_400, 100.0, packet.iter().copied());
        }
        let columns = record.columns();
        assert!(columns.at.len() <= 16 && columns.at.len() >= 8);
        assert!(columns.at.is_sorted());
        assert_eq!(columns.low.iter().min(), samples.iter().min());
        assert_eq!(columns.high.iter().max(), samples.iter().max());
        let held: u64 = record.places.iter().map(|place| place.samples).sum();
        assert_eq!(held, 10_000);
        for place in &record.places {
            let from = (place.at / 100) as usize;
            let spanned = &samples[from..from + place.samples as usize];
            assert_eq!(Some(&place.low), spanned.iter().min());
            assert_eq!(Some(&place.high), spanned.iter().max());
        }
    }

    #[test]
    fn a_pause_begins_a_place() {
        let mut record = Record::new(4);
        record.add(0, 100.0, [1, 2, 3, 4, 5].into_iter());
        record.add(1_000_000, 100.0, [9].into_iter());
        let columns = record.columns();
        assert_eq!(columns.together, 2);
        assert_eq!(columns.at, [0, 200, 400, 1_000_000]);
        assert_eq!(columns.high, [2, 4, 5, 9]);
    }

    #[test]
    fn what_comes_late_is_put_where_it_belongs() {
        let mut record = Record::new(8);
        record.add(5000, 100.0, [1, 1].into_iter());
        record.add(1000, 100.0, [2].into_iter());
        assert_eq!(record.columns().at, [1000, 5000, 5100]);
    }
}
