//! What a system's numbers count.
//!
//! *Invariant:* nothing that is analysed or planned depends on it: it is for what comes from outside, in units of its own.

use num_traits::One;
use serde::Deserialize;

use crate::rational::{Rational, whole};

/// One unit of each kind, as it is written in a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Units {
    time: Time,
    frequency: Frequency,
    power: Power,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
enum Time {
    #[serde(rename = "s")]
    Second,
    #[serde(rename = "ms")]
    Millisecond,
    #[serde(rename = "us")]
    Microsecond,
    #[serde(rename = "ns")]
    Nanosecond,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
enum Frequency {
    #[serde(rename = "Hz")]
    One,
    #[serde(rename = "kHz")]
    Kilo,
    #[serde(rename = "MHz")]
    Mega,
    #[serde(rename = "GHz")]
    Giga,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
enum Power {
    #[serde(rename = "W")]
    Watt,
    #[serde(rename = "mW")]
    Milliwatt,
    #[serde(rename = "uW")]
    Microwatt,
}

/// One divided by a number.
fn part(number: i64) -> Rational {
    Rational::one() / whole(number)
}

impl Units {
    /// A unit of time in seconds.
    #[must_use]
    pub fn seconds(self) -> Rational {
        match self.time {
            Time::Second => whole(1),
            Time::Millisecond => part(1_000),
            Time::Microsecond => part(1_000_000),
            Time::Nanosecond => part(1_000_000_000),
        }
    }

    /// A unit of power in watts.
    #[must_use]
    pub fn watts(self) -> Rational {
        match self.power {
            Power::Watt => whole(1),
            Power::Milliwatt => part(1_000),
            Power::Microwatt => part(1_000_000),
        }
    }

    /// A unit of energy in joules.
    #[must_use]
    pub fn joules(self) -> Rational {
        self.seconds() * self.watts()
    }

    /// How many cycles a unit of work is: of time × frequency.
    #[must_use]
    pub fn cycles(self) -> Rational {
        let hertz = match self.frequency {
            Frequency::One => whole(1),
            Frequency::Kilo => whole(1_000),
            Frequency::Mega => whole(1_000_000),
            Frequency::Giga => whole(1_000_000_000),
        };
        self.seconds() * hertz
    }

    /// A unit of time, as it is written.
    #[must_use]
    pub fn time(self) -> &'static str {
        match self.time {
            Time::Second => "s",
            Time::Millisecond => "ms",
            Time::Microsecond => "us",
            Time::Nanosecond => "ns",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_of_work_is_some_cycles() {
        let of = |text: &str| -> Units { toml::from_str(text).expect("units") };
        let flight = of("time = \"us\"\nfrequency = \"MHz\"\npower = \"mW\"");
        assert_eq!(flight.cycles(), whole(1));
        assert_eq!(flight.joules(), part(1_000_000_000));
        let fitted = of("time = \"ms\"\nfrequency = \"MHz\"\npower = \"W\"");
        assert_eq!(
            (fitted.cycles(), fitted.joules()),
            (whole(1000), part(1000))
        );
        assert!(toml::from_str::<Units>("time = \"h\"").is_err());
    }
}
