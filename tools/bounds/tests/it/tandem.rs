//! Tandems: examples by hand, laws, and a simulation that no bound may be below.

use std::collections::VecDeque;

use metes_bounds::{Flow, Limit, Server, Tandem, TandemBounds};
use metes_curve::{Algebra, Curve, Rational};
use proptest::prelude::*;

fn number(text: &str) -> Rational {
    text.parse().unwrap()
}

fn limit(text: &str) -> Limit {
    Limit::Finite(number(text))
}

fn bounds(text: &str) -> TandemBounds {
    Tandem::parse(text)
        .unwrap()
        .bounds(&Algebra::default())
        .unwrap()
}

const ALONE: &str = r#"
[[server]]
name = "one"
service = "ratency(4, 2)"
[[server]]
name = "two"
service = "ratency(3, 3)"
[[flow]]
name = "f"
arrival = "bucket(1, 8)"
path = ["one", "two"]
"#;

#[test]
fn a_flow_alone_pays_its_burst_once() {
    // At one: 2 + 8/4. Behind it the burst is 8 + 1·2, so at two: 3 + 10/3. Together 31/3.
    // Convolved: rate 3, latency 5, so 5 + 8/3 = 23/3.
    let found = &bounds(ALONE).flows[0];
    assert_eq!(found.hops[0].delay, limit("4"));
    assert_eq!(found.hops[1].delay, limit("19/3"));
    assert_eq!(found.hop_by_hop, limit("31/3"));
    assert_eq!(found.once, limit("23/3"));
    // A server with one flow serves it in order of arrival: 10 behind one at the latest after 4.
    // Total flow: α(t + 4) has burst 12, so 4 + (3 + 12/3).
    assert_eq!(found.total_flow, Some(limit("11")));
    // Backlogs: 8 + 2 at one, 10 + 3 at two; 8 + 5 on the way.
    assert_eq!(found.backlog_by_hop, limit("23"));
    assert_eq!(found.backlog_once, limit("13"));
    assert_eq!(
        found.service,
        Some(Curve::rate_latency(&number("3"), &number("5")).unwrap())
    );
}

fn crossed(order: &str) -> String {
    ALONE.replace(
        "service = \"ratency(3, 3)\"",
        &format!("service = \"ratency(3, 3)\"\norder = \"{order}\""),
    ) + "[[flow]]\nname = \"g\"\narrival = \"bucket(1, 4)\"\npath = [\"two\"]\n"
}

#[test]
fn cross_traffic_takes_its_share() {
    // In any order: (3(t − 3) − 4 − t)⁺ = 2(t − 13/2)⁺.
    let found = &bounds(&crossed("any")).flows[0];
    let rest = Curve::rate_latency(&number("2"), &number("13/2")).unwrap();
    assert_eq!(found.hops[1].service, Some(rest));
    assert_eq!(found.once, limit("25/2"));
    assert_eq!(found.hop_by_hop, limit("31/2"));
    assert_eq!(found.total_flow, None);
    // In order of arrival: θ = 3 + 4/3, behind it 3(t − 3) − 4 − (t − 13/3) = 2t − 26/3, which is
    // 2(t − 13/3): less latency at the same rate.
    let found = &bounds(&crossed("fifo")).flows[0];
    let rest = Curve::rate_latency(&number("2"), &number("13/3")).unwrap();
    assert_eq!(found.hops[1].service, Some(rest));
    assert_eq!(found.once, limit("31/3"));
    // Total flow: 4 + 3 + (12 + 4)/3.
    assert_eq!(found.total_flow, Some(limit("37/3")));
    let all = bounds(&crossed("fifo"));
    // 10 + 4 and what comes in 3.
    assert_eq!(all.servers[1].backlog, limit("20"));
}

#[test]
fn staircases_are_not_rounded() {
    // Packets of 3, 4 apart, served one unit a tick; beside them their hull bucket(3/4, 3).
    let text = ALONE
        .replace("bucket(1, 8)", "stair(0, 4, 3)")
        .replace("ratency(4, 2)", "stair(1, 1, 1)")
        .replace(", \"two\"", "");
    let hull = text.replace("stair(0, 4, 3)", "bucket(3/4, 3)");
    let (exact, above) = (bounds(&text), bounds(&hull));
    // 3 are waiting, one leaves behind 1, 2 and 3.
    assert_eq!(exact.flows[0].once, limit("3"));
    assert_eq!(exact.flows[0].backlog_once, limit("3"));
    // The hull has begun the next packet before the first has gone.
    assert!(above.flows[0].once > exact.flows[0].once);
}

#[test]
fn too_much_is_unbounded_and_no_error() {
    let found = bounds(&ALONE.replace("bucket(1, 8)", "bucket(5, 8)"));
    let flow = &found.flows[0];
    assert_eq!(
        [&flow.once, &flow.hop_by_hop, &flow.backlog_once],
        [&Limit::Unbounded, &Limit::Unbounded, &Limit::Unbounded]
    );
    // What an overloaded server sends on takes all of the next one.
    let found = bounds(&crossed("any").replace("bucket(1, 8)", "bucket(5, 8)"));
    assert_eq!(found.flows[1].once, Limit::Unbounded);
    assert_eq!(found.servers[1].backlog, Limit::Unbounded);
}

#[test]
fn what_is_no_tandem_is_said_with_a_remedy() {
    let circle = ALONE.to_owned()
        + "[[flow]]\nname = \"g\"\narrival = \"bucket(1, 4)\"\npath = [\"two\", \"one\"]\n";
    let cases = [
        (String::new(), "no [[server]]"),
        (circle, "come back"),
        (
            crossed("any").replace("ratency(3, 3)\"", "ratency(3, 3)\"\nstrict = false"),
            "not strict",
        ),
        (crossed("lifo"), "\"any\" or \"fifo\""),
        (
            ALONE.replace("ratency(3, 3)", "ratency(3)"),
            "ratency(rate, latency)",
        ),
        (ALONE.replace("ratency(3, 3)", "ratency(-3, 3)"), "rate"),
        (ALONE.replace("bucket(1, 8)", "bucket(1, a)"), "column 11"),
        (
            ALONE.replace("bucket(1, 8)", "pail(1, 8)"),
            "bucket(rate, burst)",
        ),
        (ALONE.replace("\"two\"]", "\"three\"]"), "one, two"),
        (
            ALONE.replace("name = \"two\"", "name = \"one\""),
            "name of its own",
        ),
        (ALONE.replace("\"two\"]", "\"one\"]"), "twice"),
        (ALONE.replace("[\"one\", \"two\"]", "[]"), "at least one"),
        (ALONE.replace("path", "paths"), "line 11"),
    ];
    for (text, part) in cases {
        let error = Tandem::parse(&text).unwrap_err().to_string();
        assert!(error.contains(part), "{error}\n{text}");
    }
    // Negative service curves are refused, not computed with.
    let server = |service: Curve| Server {
        name: "s".into(),
        service,
        strict: true,
        fifo: false,
    };
    let flow = Flow {
        name: "f".into(),
        arrival: Curve::token_bucket(&number("1"), &number("1")).unwrap(),
        path: vec![0],
    };
    for (offset, rate, part) in [("-1", "1", "negative"), ("5", "-1/9", "negative")] {
        let service = Curve::affine(&number(rate), &number(offset));
        let error = Tandem::new(vec![server(service)], vec![flow.clone()]).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
    let falls = Curve::staircase(&number("1"), &number("1"), &number("1")).unwrap();
    let falls = Curve::constant(metes_curve::Value::Finite(number("5")))
        .minimum(&falls)
        .unwrap()
        .difference(&Curve::one_step(&number("5/2"), &number("1")).unwrap())
        .unwrap();
    let error = Tandem::new(vec![server(falls)], vec![flow]).unwrap_err();
    assert!(error.to_string().contains("falls"), "{error}");
}

/// A tandem of rate-latency servers and token buckets in whole numbers.
#[derive(Clone, Debug)]
struct Plan {
    /// Rate, latency, order of arrival.
    servers: Vec<(u32, u32, bool)>,
    /// Rate, burst, first server, number of servers.
    flows: Vec<(u32, u32, usize, usize)>,
}

fn plans() -> impl Strategy<Value = Plan> {
    let servers = prop::collection::vec((1_u32..12, 0_u32..6, any::<bool>()), 1..5);
    let flows = prop::collection::vec((0_u32..4, 1_u32..9, 0_usize..9, 0_usize..9), 1..5);
    (servers, flows).prop_map(|(servers, flows)| {
        let count = servers.len();
        let flows = flows.into_iter().map(|(rate, burst, first, length)| {
            let first = first % count;
            // A tick's units come at once: that is a burst of as many at least.
            (rate, burst.max(rate), first, 1 + length % (count - first))
        });
        Plan {
            flows: flows.collect(),
            servers,
        }
    })
}

impl Plan {
    fn path(&self, flow: usize) -> std::ops::Range<usize> {
        let (_, _, first, count) = self.flows[flow];
        first..first + count
    }

    /// The simulated servers serve at the ends of ticks, so they are late by up to one.
    fn tandem(&self) -> Tandem {
        let whole = |value: u32| Rational::from(i64::from(value));
        let servers = self
            .servers
            .iter()
            .enumerate()
            .map(|(index, (rate, latency, fifo))| Server {
                name: format!("s{index}"),
                service: Curve::rate_latency(&whole(*rate), &whole(*latency + 1)).unwrap(),
                strict: true,
                fifo: *fifo,
            });
        let flows = self
            .flows
            .iter()
            .enumerate()
            .map(|(index, (rate, burst, ..))| Flow {
                name: format!("f{index}"),
                arrival: Curve::token_bucket(&whole(*rate), &whole(*burst)).unwrap(),
                path: self.path(index).collect(),
            });
        Tandem::new(servers.collect(), flows.collect()).unwrap()
    }

    /// Sends units of data, each flow greedily from its start on; a server that serves in any order
    /// serves `last` last. The longest delay and the most data on the way, by flow.
    fn simulate(&self, starts: &[u32], last: usize, ticks: u32) -> Vec<(u32, usize)> {
        struct Unit {
            flow: usize,
            sent: u32,
        }
        let mut queues: Vec<VecDeque<Unit>> =
            self.servers.iter().map(|_| VecDeque::new()).collect();
        let mut busy: Vec<Option<u32>> = vec![None; self.servers.len()];
        let mut found = vec![(0, 0); self.flows.len()];
        for tick in 0..ticks {
            for (flow, (rate, burst, first, _)) in self.flows.iter().enumerate() {
                let units = match tick.checked_sub(starts[flow]) {
                    Some(0) => *burst,
                    Some(_) => *rate,
                    None => 0,
                };
                queues[*first].extend((0..units).map(|_| Unit { flow, sent: tick }));
            }
            for (flow, found) in found.iter_mut().enumerate() {
                let on_way = queues.iter().flatten().filter(|unit| unit.flow == flow);
                found.1 = found.1.max(on_way.count());
            }
            let mut moving = Vec::new();
            for (server, (rate, latency, fifo)) in self.servers.iter().enumerate() {
                if queues[server].is_empty() {
                    busy[server] = None;
                    continue;
                }
                let since = *busy[server].get_or_insert(tick);
                if tick - since < *latency {
                    continue;
                }
                for _ in 0..*rate {
                    let others = queues[server].iter().position(|unit| unit.flow != last);
                    let next = match fifo {
                        true => 0,
                        false => others.unwrap_or(0),
                    };
                    moving.extend(queues[server].remove(next).map(|unit| (server, unit)));
                }
            }
            // What is served in a tick is at the next server at its end.
            for (server, unit) in moving {
                if self.path(unit.flow).contains(&(server + 1)) {
                    queues[server + 1].push_back(unit);
                } else {
                    let delay = tick + 1 - unit.sent;
                    found[unit.flow].0 = found[unit.flow].0.max(delay);
                }
            }
        }
        found
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_simulation_exceeds_a_bound(
        plan in plans(), starts in prop::collection::vec(0_u32..12, 5), last in 0_usize..5,
    ) {
        let bounds = plan.tandem().bounds(&Algebra::default()).unwrap();
        let simulated = plan.simulate(&starts, last % plan.flows.len(), 80);
        for (found, (delay, backlog)) in bounds.flows.iter().zip(simulated) {
            let whole = |value: i64| Limit::Finite(Rational::from(value));
            let (delay, backlog) = (whole(delay.into()), whole(backlog as i64));
            for bound in [Some(&found.once), Some(&found.hop_by_hop), found.total_flow.as_ref()] {
                prop_assert!(bound.is_none_or(|bound| *bound >= delay), "{delay} {found:?}");
            }
            prop_assert!(found.backlog_once >= backlog, "{backlog} {found:?}");
            prop_assert!(found.backlog_by_hop >= backlog);
            // In whatever order residual services are convolved, it is one curve.
            let services: Option<Vec<Curve>> = found.hops.iter().map(|hop| hop.service.clone()).collect();
            let pairwise = services.and_then(|services| {
                services.into_iter().reduce(|all, next| all.convolution(&next).unwrap())
            });
            prop_assert_eq!(&found.service, &pairwise);
            // To convolve first never costs.
            prop_assert!(found.once <= found.hop_by_hop);
            prop_assert!(found.backlog_once <= found.backlog_by_hop);
        }
    }
}

#[test]
fn a_simulation_comes_near_the_bound() {
    // Alone at one server: a burst of 8 at rate 4 behind latency 2 takes 4 ticks; the bound has
    // one tick more, which the simulation's ticks are granted.
    let plan = Plan {
        servers: vec![(4, 2, true)],
        flows: vec![(1, 8, 0, 1)],
    };
    assert_eq!(plan.simulate(&[0], 0, 40), [(4, 10)]);
    let bounds = plan.tandem().bounds(&Algebra::default()).unwrap();
    assert_eq!(bounds.flows[0].once, limit("5"));
}
