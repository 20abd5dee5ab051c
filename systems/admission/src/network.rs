//! How long a request is on the way, by (min,+) curves: the horizontal deviation of what arrives and how it is served
//! (Le Boudec and Thiran, *Network Calculus*, theorem 1.4.2).
//!
//! *Invariant:* a delay is not below the longest that a legal arrival can meet, rounded up to a whole unit of time.

use metes_curve::{Curve, Rational, Value};

use crate::set::{Function, Network};

/// The longest delay of a function's requests; none if there is no longest, or it is beyond 64 bits.
pub(crate) fn delay(function: &Function, network: &Network) -> Option<u64> {
    let arrival = arrival(function, network)?;
    let service = Curve::rate_latency(&number(network.rate), &number(network.latency)).ok()?;
    let deviation = arrival.horizontal_deviation(&service).ok()?;
    match deviation.value {
        Value::Finite(delay) => rounded_up(&delay),
        _ => None,
    }
}

/// Bytes in any window: as many requests as a bucket of `burst` tokens lets through.
fn arrival(function: &Function, network: &Network) -> Option<Curve> {
    let period = number(function.period);
    let early = &number(function.burst - 1) * &period;
    Curve::arrivals_at_most(&period, &early, &number(0), &number(network.bytes)).ok()
}

fn rounded_up(number: &Rational) -> Option<u64> {
    let down = number.floor();
    let whole: u64 = down.to_string().parse().ok()?;
    match down == *number {
        true => Some(whole),
        false => whole.checked_add(1),
    }
}

/// Any number of 64 bits, of which the curves' own conversion takes 63.
fn number(whole: u64) -> Rational {
    whole
        .to_string()
        .parse()
        .expect("a whole number is a fraction")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(burst: u64, period: u64) -> Function {
        Function {
            burst,
            ..Function::new("a", period, 100, 1, 0)
        }
    }

    #[test]
    fn a_burst_is_served_at_the_rate_after_the_latency() {
        let network = Network {
            bytes: 1000,
            latency: 20,
            rate: 300,
        };
        assert_eq!(delay(&request(1, 10), &network), Some(24));
        assert_eq!(delay(&request(3, 10), &network), Some(30));
        // The first of later requests waits no longer than the burst.
        assert_eq!(delay(&request(3, 1000), &network), Some(30));
    }

    #[test]
    fn what_comes_faster_than_it_is_served_has_no_bound() {
        let network = Network {
            bytes: 1000,
            latency: 0,
            rate: 1,
        };
        assert_eq!(delay(&request(1, 999), &network), None);
        assert_eq!(delay(&request(1, 1000), &network), Some(1000));
    }

    #[test]
    fn extreme_figures_are_no_panic() {
        for figure in [1, u64::MAX >> 1, u64::MAX] {
            for other in [1, 3, u64::MAX] {
                let network = Network {
                    bytes: figure,
                    latency: other,
                    rate: figure,
                };
                let found = delay(&request(other, figure), &network);
                assert!(found.is_none_or(|delay| delay >= other));
            }
        }
    }
}
