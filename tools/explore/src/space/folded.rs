//! A grid whose points are told apart by what they stand for.
//!
//! Parameters that cannot matter make several grid points the same thing
//! ("dead" there). A [`Folded`] grid numbers the different things.
//!
//! Invariant: every value has one number, the order of first appearance.

use std::collections::HashMap;
use std::hash::Hash;

/// A number that no value has.
const NONE: u32 = u32::MAX;

/// A grid and its different values.
#[derive(Clone, Debug)]
pub(super) struct Folded<T> {
    radices: Vec<usize>,
    /// Of each grid point, the number of its value.
    to: Vec<u32>,
    /// Of each value, its first grid point.
    first: Vec<u32>,
    values: Vec<T>,
}

impl<T: Clone + Eq + Hash> Folded<T> {
    /// Folds the grid of the given numbers of values; `make` says what a point
    /// stands for, if anything. O(points) calls.
    pub(super) fn new(radices: Vec<usize>, make: impl Fn(&[usize]) -> Option<T>) -> Self {
        let points = radices.iter().product();
        let mut known: HashMap<T, u32> = HashMap::new();
        let mut folded = Folded {
            to: Vec::with_capacity(points),
            first: Vec::new(),
            values: Vec::new(),
            radices,
        };
        let mut digits = vec![0; folded.radices.len()];
        for point in 0..points {
            let number = match make(&digits) {
                None => NONE,
                Some(value) => *known.entry(value.clone()).or_insert_with(|| {
                    folded.values.push(value);
                    folded.first.push(point as u32);
                    folded.values.len() as u32 - 1
                }),
            };
            folded.to.push(number);
            for (digit, radix) in digits.iter_mut().zip(&folded.radices) {
                *digit += 1;
                if *digit < *radix {
                    break;
                }
                *digit = 0;
            }
        }
        folded
    }

    pub(super) fn values(&self) -> &[T] {
        &self.values
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// How many parameters there are.
    pub(super) fn radices(&self) -> usize {
        self.radices.len()
    }

    fn number(&self, digits: &[usize]) -> u32 {
        let mut point = 0;
        for (digit, radix) in digits.iter().zip(&self.radices).rev() {
            point = point * radix + digit;
        }
        self.to[point]
    }

    /// The value of a grid point, if it stands for one.
    pub(super) fn at(&self, digits: &[usize]) -> Option<u32> {
        Some(self.number(digits)).filter(|&number| number != NONE)
    }

    /// The first grid point of a value.
    pub(super) fn digits(&self, number: u32) -> Vec<usize> {
        let mut point = self.first[number as usize] as usize;
        let digit = |radix: &usize| {
            let digit = point % radix;
            point /= radix;
            digit
        };
        self.radices.iter().map(digit).collect()
    }

    /// Whether a parameter does not matter at a point.
    fn dead(&self, digits: &[usize], axis: usize) -> bool {
        let here = self.number(digits);
        let mut digits = digits.to_vec();
        (0..self.radices[axis]).all(|value| {
            digits[axis] = value;
            self.number(&digits) == here
        })
    }

    /// The number that the first grid point of a value has in another grid of
    /// the same parameters.
    pub(super) fn same(&self, number: u32, other: &Self) -> Option<u32> {
        let point = self.first[number as usize] as usize;
        other.to.get(point).copied().filter(|&same| same != NONE)
    }

    /// A value that has each parameter from one of two; `coin` says from which.
    pub(super) fn cross(&self, a: u32, b: u32, coin: &mut dyn FnMut() -> bool) -> Option<u32> {
        let (a, b) = (self.digits(a), self.digits(b));
        let digits: Vec<usize> = a
            .into_iter()
            .zip(b)
            .map(|(a, b)| if coin() { a } else { b })
            .collect();
        Some(self.number(&digits)).filter(|&number| number != NONE)
    }

    /// All values one parameter away. Where a change makes another parameter
    /// matter that did not before, every value of that one is.
    pub(super) fn neighbours(&self, number: u32) -> Vec<u32> {
        let digits = self.digits(number);
        let axes = 0..self.radices.len();
        let dead: Vec<bool> = axes.clone().map(|axis| self.dead(&digits, axis)).collect();
        let mut found = Vec::new();
        for axis in axes.clone() {
            for value in 0..self.radices[axis] {
                let mut other = digits.clone();
                other[axis] = value;
                found.push(self.number(&other));
                for woken in axes.clone() {
                    if woken != axis && dead[woken] && !self.dead(&other, woken) {
                        let mut further = other.clone();
                        for value in 0..self.radices[woken] {
                            further[woken] = value;
                            found.push(self.number(&further));
                        }
                    }
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        found.retain(|&other| other != number && other != NONE);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A switch, and a value that matters only when it is on.
    fn switched() -> Folded<usize> {
        Folded::new(vec![2, 3], |digits| Some(digits[0] * (1 + digits[1])))
    }

    #[test]
    fn dead_parameters_are_folded() {
        assert_eq!(switched().values(), [0, 1, 2, 3]);
    }

    #[test]
    fn what_wakes_a_parameter_reaches_all_its_values() {
        let folded = switched();
        assert_eq!(folded.neighbours(0), [1, 2, 3]);
        assert_eq!(folded.neighbours(2), [0, 1, 3]);
    }

    #[test]
    fn points_that_stand_for_nothing_are_left_out() {
        let folded = Folded::new(vec![4], |digits| (digits[0] != 1).then_some(digits[0]));
        assert_eq!(folded.values(), [0, 2, 3]);
        assert_eq!(folded.neighbours(0), [1, 2]);
    }
}
