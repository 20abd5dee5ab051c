//! Windows of the electric field over time in bounded memory: places that each stand for some windows.
//!
//! *Invariant:* a place spans from the least to the greatest of its windows; its mean is theirs, its root of the mean
//! square that of all their samples, as windows are of one length.

use std::collections::BTreeSet;

use metes_duster_protocol::definitions::FieldWindow;
use serde::Serialize;

/// Most windows of which it is known that they have been seen.
const KNOWN: usize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Place {
    at: u64,
    mean: f64,
    low: i32,
    high: i32,
    square: f64,
    windows: u64,
}

/// Windows over time.
#[derive(Clone, Debug)]
pub struct Windows {
    places: Vec<Place>,
    most: usize,
    together: u64,
    seen: BTreeSet<(u16, u32)>,
    /// How many have come.
    pub count: u64,
}

/// Windows as the page has them: columns of the same length.
#[derive(Debug, PartialEq, Serialize)]
pub struct Columns {
    /// Windows of a full place.
    pub together: u64,
    /// When each place begins, in microseconds since boot; never falls.
    pub at: Vec<u64>,
    /// Mean.
    pub mean: Vec<f64>,
    /// Least sample.
    pub low: Vec<i32>,
    /// Greatest sample.
    pub high: Vec<i32>,
    /// Root of the mean square.
    pub rms: Vec<f64>,
}

impl Windows {
    /// None yet, in at most so many places, two or more.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Windows {
            places: Vec::new(),
            most: most.max(2),
            together: 1,
            seen: BTreeSet::new(),
            count: 0,
        }
    }

    /// Adds a window that begins at `at` microseconds, unless one of the name has been there. O(log windows), amortised.
    pub fn add(&mut self, name: (u16, u32), at: u64, window: &FieldWindow) {
        if self.seen.len() == KNOWN {
            self.seen.pop_first();
        }
        if !self.seen.insert(name) {
            return;
        }
        self.count += 1;
        let rms = f64::from(window.rms);
        let place = Place {
            at,
            mean: window.mean.into(),
            low: window.least,
            high: window.greatest,
            square: rms * rms,
            windows: 1,
        };
        match self.places.last_mut() {
            Some(last) if last.windows < self.together && last.at <= at => {
                *last = united(last, &place);
            }
            _ => self.places.push(place),
        }
        if self.places.len() > self.most {
            self.places.sort_by_key(|place| place.at);
            self.places = self
                .places
                .chunks(2)
                .map(|pair| pair[1..].iter().fold(pair[0], |sum, one| united(&sum, one)))
                .collect();
            self.together *= 2;
        }
    }

    /// All in the order of time. O(places log places).
    #[must_use]
    pub fn columns(&self) -> Columns {
        let mut places = self.places.clone();
        places.sort_by_key(|place| place.at);
        let rounded = |value: f64| (value * 10.0).round() / 10.0;
        Columns {
            together: self.together,
            at: places.iter().map(|place| place.at).collect(),
            mean: places.iter().map(|place| rounded(place.mean)).collect(),
            low: places.iter().map(|place| place.low).collect(),
            high: places.iter().map(|place| place.high).collect(),
            rms: places
                .iter()
                .map(|place| rounded(place.square.sqrt()))
                .collect(),
        }
    }
}

fn united(a: &Place, b: &Place) -> Place {
    let windows = a.windows + b.windows;
    let share = |x: f64, y: f64| (x * a.windows as f64 + y * b.windows as f64) / windows as f64;
    Place {
        at: a.at,
        mean: share(a.mean, b.mean),
        low: a.low.min(b.low),
        high: a.high.max(b.high),
        square: share(a.square, b.square),
        windows,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(first: u32, mean: i32) -> FieldWindow {
        FieldWindow {
            first,
            mean,
            least: mean - 5,
            greatest: mean + 7,
            rms: mean.unsigned_abs(),
        }
    }

    #[test]
    fn a_long_record_keeps_means_and_extremes() {
        let mut windows = Windows::new(8);
        for number in 0..1000_u32 {
            let mean = if number == 777 { -4000 } else { 100 };
            windows.add(
                (1, number),
                u64::from(number) * 20_000,
                &window(number, mean),
            );
            // Out of the store, too.
            windows.add(
                (1, number),
                u64::from(number) * 20_000,
                &window(number, mean),
            );
        }
        assert_eq!(windows.count, 1000);
        let columns = windows.columns();
        assert!(columns.at.len() <= 8 && columns.at.is_sorted());
        assert_eq!(columns.low.iter().min(), Some(&-4005));
        assert_eq!(columns.high.iter().max(), Some(&107));
        let held: u64 = windows.places.iter().map(|place| place.windows).sum();
        let sum: f64 = windows
            .places
            .iter()
            .map(|place| place.mean * place.windows as f64)
            .sum();
        assert_eq!(held, 1000);
        assert!((sum - (999.0 * 100.0 - 4000.0)).abs() < 1e-6);
    }
}
