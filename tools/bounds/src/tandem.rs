//! Flows that cross chains of servers: delay and backlog from exact curves.
//!
//! Of a server with service curve β and other traffic of arrival curve α, a flow is left
//!
//! - (β − α)⁺, closed from above to a curve that never falls, if the server is strict (while
//!   anything waits it serves at least β), in whatever order it serves;
//! - β_θ(t) = (β(t) − α(t − θ))⁺ behind θ and 0 before, closed from below, for any θ, if it serves
//!   in order of arrival. Here θ is the horizontal deviation of α and β.
//!
//! What leaves a server arrives at the next one with α ⊘ (residual service). Delays are then
//! horizontal, backlogs vertical deviations, by three methods: *total flow* (each server delays all
//! of its traffic alike; in order of arrival only), *hop by hop* (the flow's delay at each residual
//! service, added up), and *once* (the residual services are convolved first, so that the flow's burst is
//! paid for at one server only). Within a flow data keep their order.
//!
//! The proofs are in `docs/curve-bounds.md`. Service curves that are negative somewhere, or fall,
//! are refused: the theorems do not hold for them.
//!
//! Invariant: paths have no cycle, so servers are taken in an order in which all that arrives at
//! one is known before it is.

mod document;
mod expression;

use metes_curve::plan::Plan;
use metes_curve::{Algebra, Curve, Error, Rational, Value};

pub use document::DocumentError;

/// A server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Its name.
    pub name: String,
    /// Service curve β.
    pub service: Curve,
    /// Whether it serves at least β(Δ) in any window of length Δ throughout which something waits.
    pub strict: bool,
    /// Whether it serves in order of arrival.
    pub fifo: bool,
}

/// A flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Its name.
    pub name: String,
    /// Arrival curve α at its first server.
    pub arrival: Curve,
    /// The servers that it crosses, by number, in order.
    pub path: Vec<usize>,
}

/// Servers and the flows that cross them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tandem {
    servers: Vec<Server>,
    flows: Vec<Flow>,
    /// Every server behind those from which a flow comes to it.
    order: Vec<usize>,
}

/// Why there is no analysis.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TandemError {
    /// A path leads nowhere, to one server twice, or to a server that is not there.
    #[error("flow {flow}: {what}")]
    Path {
        /// The flow's name.
        flow: String,
        /// What is wrong, and what is right.
        what: String,
    },
    /// Paths that meet in a circle.
    #[error(
        "the flows cross server {server} and come back to it by way of others: what arrives there depends on \
         itself; order the servers so that every path goes one way"
    )]
    Cycle {
        /// A server of the circle.
        server: String,
    },
    /// A curve that is no arrival or service curve.
    #[error(
        "the {kind} curve of {name} {what}: take its positive part and its non-decreasing closure, or \
         correct it"
    )]
    Curve {
        /// `arrival` or `service`.
        kind: &'static str,
        /// The flow or the server.
        name: String,
        /// What is wrong.
        what: &'static str,
    },
    /// A server that guarantees its flows nothing.
    #[error(
        "server {server} serves several flows in any order and is not strict, so none of them is \
         guaranteed a share: say strict = true or order = \"fifo\", if it is so"
    )]
    NoShare {
        /// Its name.
        server: String,
    },
    /// An operation on curves that cannot be done.
    #[error("{what}: {error}")]
    Algebra {
        /// What was to be computed.
        what: String,
        /// Why not.
        error: Error,
    },
}

/// A delay or a backlog.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    /// An exact number.
    Finite(Rational),
    /// There is none.
    Unbounded,
}

impl Limit {
    fn of(value: Value) -> Self {
        match value {
            Value::Finite(number) => Limit::Finite(number.max(Rational::from(0))),
            Value::NegativeInfinity => Limit::Finite(Rational::from(0)),
            Value::PositiveInfinity => Limit::Unbounded,
        }
    }

    fn sum<'a>(parts: impl IntoIterator<Item = &'a Limit>) -> Self {
        let mut sum = Rational::from(0);
        for part in parts {
            match part {
                Limit::Finite(number) => sum = &sum + number,
                Limit::Unbounded => return Limit::Unbounded,
            }
        }
        Limit::Finite(sum)
    }

    /// The number, if there is one.
    #[must_use]
    pub fn finite(&self) -> Option<&Rational> {
        match self {
            Limit::Finite(number) => Some(number),
            Limit::Unbounded => None,
        }
    }
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Limit::Finite(number) => number.fmt(f),
            Limit::Unbounded => f.write_str("unbounded"),
        }
    }
}

/// A flow at one of its servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The server, by number.
    pub server: usize,
    /// What arrives of the flow; `None` where it is not bounded.
    pub arrival: Option<Curve>,
    /// What is left to it; `None` where nothing is guaranteed.
    pub service: Option<Curve>,
    /// Longest delay.
    pub delay: Limit,
    /// Most data of the flow waiting.
    pub backlog: Limit,
}

/// What is known of a flow from end to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowBounds {
    /// By server.
    pub hops: Vec<Hop>,
    /// The delays of its servers added up, each alike for all traffic; `None` if a server on the
    /// way, or on the way of what it meets, does not serve in order of arrival.
    pub total_flow: Option<Limit>,
    /// The delays of the hops added up.
    pub hop_by_hop: Limit,
    /// The delay at the convolution of what is left to it.
    pub once: Limit,
    /// The backlogs of the hops added up.
    pub backlog_by_hop: Limit,
    /// The backlog at the convolution.
    pub backlog_once: Limit,
    /// The convolution of what is left to it; `None` where nothing is guaranteed.
    pub service: Option<Curve>,
}

/// What is known of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerBounds {
    /// Most data of all flows waiting.
    pub backlog: Limit,
    /// Longest delay of any data, if it serves in order of arrival.
    pub delay: Option<Limit>,
}

/// What is known of servers and flows, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TandemBounds {
    /// Of each server.
    pub servers: Vec<ServerBounds>,
    /// Of each flow.
    pub flows: Vec<FlowBounds>,
}

impl Tandem {
    /// Servers and flows that can be analysed.
    ///
    /// # Errors
    /// [`TandemError`].
    pub fn new(servers: Vec<Server>, flows: Vec<Flow>) -> Result<Self, TandemError> {
        for server in &servers {
            let wrong = check(&server.service).map_err(algebra("a service curve"))?;
            wrong.map_or(Ok(()), |what| {
                Err(TandemError::Curve {
                    kind: "service",
                    name: server.name.clone(),
                    what,
                })
            })?;
        }
        for flow in &flows {
            let wrong = check(&flow.arrival).map_err(algebra("an arrival curve"))?;
            wrong.map_or(Ok(()), |what| {
                Err(TandemError::Curve {
                    kind: "arrival",
                    name: flow.name.clone(),
                    what,
                })
            })?;
            flow.verify(servers.len())?;
        }
        let order = ordered(&servers, &flows)?;
        for (number, server) in servers.iter().enumerate() {
            let crossing = flows.iter().filter(|flow| flow.path.contains(&number));
            if !server.strict && !server.fifo && crossing.count() > 1 {
                return Err(TandemError::NoShare {
                    server: server.name.clone(),
                });
            }
        }
        Ok(Tandem {
            servers,
            flows,
            order,
        })
    }

    /// The servers.
    #[must_use]
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// The flows.
    #[must_use]
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// Delays and backlogs.
    ///
    /// # Errors
    /// [`TandemError::Algebra`], where curves take more pieces than `algebra` allows.
    pub fn bounds(&self, algebra: &Algebra) -> Result<TandemBounds, TandemError> {
        let separated = Separated::of(self, algebra)?;
        let total = Total::of(self, algebra)?;
        let flows = self.flows.iter().enumerate().map(|(number, flow)| {
            let hops = separated.hops[number].clone();
            let hops: Vec<_> = hops.into_iter().flatten().collect();
            let service = convolved(&hops, algebra)?;
            let deviations = Deviations::of(Some(&flow.arrival), service.as_ref(), algebra)?;
            let delays = (flow.path.iter()).map(|server| total.delays[*server].as_ref());
            let delays: Option<Vec<_>> = delays.collect();
            Ok(FlowBounds {
                total_flow: delays.map(Limit::sum),
                hop_by_hop: Limit::sum(hops.iter().map(|hop| &hop.delay)),
                backlog_by_hop: Limit::sum(hops.iter().map(|hop| &hop.backlog)),
                once: deviations.delay,
                backlog_once: deviations.backlog,
                hops,
                service,
            })
        });
        let flows = flows.collect::<Result<_, TandemError>>()?;
        let servers = separated.backlogs.into_iter().zip(total.delays);
        let servers = servers.map(|(backlog, delay)| ServerBounds { backlog, delay });
        Ok(TandemBounds {
            servers: servers.collect(),
            flows,
        })
    }

    /// The flows that cross a server, and at which hop of theirs.
    fn crossing(&self, server: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.flows
            .iter()
            .enumerate()
            .filter_map(move |(flow, own)| {
                let hop = own.path.iter().position(|other| *other == server)?;
                Some((flow, hop))
            })
    }
}

impl Flow {
    fn verify(&self, servers: usize) -> Result<(), TandemError> {
        let wrong = |what: &str| {
            Err(TandemError::Path {
                flow: self.name.clone(),
                what: what.to_owned(),
            })
        };
        if self.path.is_empty() {
            return wrong("its path names no server; name at least one");
        }
        for (hop, server) in self.path.iter().enumerate() {
            if *server >= servers {
                return wrong("its path names a server that is not there");
            }
            if self.path[..hop].contains(server) {
                return wrong("its path names one server twice; a flow crosses each once");
            }
        }
        Ok(())
    }
}

/// What is wrong with an arrival or service curve, if something is.
fn check(curve: &Curve) -> Result<Option<&'static str>, Error> {
    if !Curve::zero().is_nowhere_above(curve)? {
        return Ok(Some("is negative somewhere"));
    }
    if curve.upper_nondecreasing_closure()? != *curve {
        return Ok(Some("falls somewhere"));
    }
    Ok(None)
}

/// Every server behind those from which a flow comes to it.
fn ordered(servers: &[Server], flows: &[Flow]) -> Result<Vec<usize>, TandemError> {
    let before = |server: usize| {
        let pairs = flows.iter().flat_map(|flow| flow.path.windows(2));
        pairs.filter_map(move |pair| (pair[1] == server).then_some(pair[0]))
    };
    let mut order = Vec::with_capacity(servers.len());
    while order.len() < servers.len() {
        let left = || (0..servers.len()).filter(|server| !order.contains(server));
        let next = left().find(|server| before(*server).all(|other| order.contains(&other)));
        match next {
            Some(server) => order.push(server),
            None => {
                // What is left has predecessors that are left: going back leads round.
                let mut server = left().next().unwrap_or(0);
                for _ in 0..servers.len() {
                    let back = before(server).find(|other| !order.contains(other));
                    server = back.unwrap_or(server);
                }
                return Err(TandemError::Cycle {
                    server: servers[server].name.clone(),
                });
            }
        }
    }
    Ok(order)
}

/// Delay and backlog.
struct Deviations {
    delay: Limit,
    backlog: Limit,
}

impl Deviations {
    fn of(
        arrival: Option<&Curve>,
        service: Option<&Curve>,
        algebra: &Algebra,
    ) -> Result<Self, TandemError> {
        let (Some(arrival), Some(service)) = (arrival, service) else {
            return Ok(Deviations {
                delay: Limit::Unbounded,
                backlog: Limit::Unbounded,
            });
        };
        let wrong = self::algebra("a deviation");
        let delay = algebra.horizontal_deviation(arrival, service);
        let backlog = algebra.vertical_deviation(arrival, service);
        Ok(Deviations {
            delay: Limit::of(delay.map_err(&wrong)?.value),
            backlog: Limit::of(backlog.map_err(&wrong)?.value),
        })
    }
}

fn algebra(what: &str) -> impl Fn(Error) -> TandemError + use<'_> {
    move |error| TandemError::Algebra {
        what: what.to_owned(),
        error,
    }
}

/// The sum of arrivals; `None` if one is not bounded.
fn sum<'a>(
    arrivals: impl Iterator<Item = Option<&'a Curve>>,
    algebra: &Algebra,
) -> Result<Option<Curve>, TandemError> {
    let mut total = Curve::zero();
    for arrival in arrivals {
        match arrival {
            None => return Ok(None),
            Some(arrival) => {
                let sum = algebra.sum(&total, arrival);
                total = sum.map_err(self::algebra("a sum of arrivals"))?;
            }
        }
    }
    Ok(Some(total))
}

/// What a server leaves to a flow beside others that arrive so.
fn residual(server: &Server, others: &Curve, algebra: &Algebra) -> Result<Option<Curve>, Error> {
    let zero = Curve::zero();
    if *others == zero {
        return Ok(Some(server.service.clone()));
    }
    if !server.fifo {
        let left = algebra.difference(&server.service, others)?;
        let left = algebra.maximum(&left, &zero)?;
        return algebra.upper_nondecreasing_closure(&left).map(Some);
    }
    let Value::Finite(theta) = algebra.horizontal_deviation(others, &server.service)?.value else {
        return Ok(None);
    };
    let left = algebra.difference(&server.service, &others.delayed(&theta)?)?;
    let left = algebra.maximum(&left, &zero)?;
    let left = algebra.minimum(&left, &Curve::delay(&theta)?)?;
    algebra.lower_nondecreasing_closure(&left).map(Some)
}

/// α ⊘ β, unless it is not bounded.
fn output(arrival: &Curve, service: &Curve, algebra: &Algebra) -> Result<Option<Curve>, Error> {
    let out = algebra.deconvolution(arrival, service)?;
    let at_start = out.value(&Rational::from(0));
    Ok((at_start != Some(Value::PositiveInfinity)).then_some(out))
}

fn convolved(hops: &[Hop], algebra: &Algebra) -> Result<Option<Curve>, TandemError> {
    let services = hops.iter().map(|hop| hop.service.clone());
    let services = services.collect::<Option<Vec<Curve>>>();
    let Some(services) = services.filter(|services| !services.is_empty()) else {
        return Ok(None);
    };
    let all = algebra.chain(&services, &Plan::Automatic);
    all.map(|all| Some(all.curve))
        .map_err(self::algebra("the convolution of residual services"))
}

/// Each flow apart, by what is left to it.
struct Separated {
    /// By flow, by place in its path.
    hops: Vec<Vec<Option<Hop>>>,
    /// By server.
    backlogs: Vec<Limit>,
}

impl Separated {
    fn of(tandem: &Tandem, algebra: &Algebra) -> Result<Self, TandemError> {
        let mut hops: Vec<Vec<Option<Hop>>> = (tandem.flows.iter())
            .map(|flow| vec![None; flow.path.len()])
            .collect();
        let mut arrivals: Vec<Option<Curve>> = (tandem.flows.iter())
            .map(|flow| Some(flow.arrival.clone()))
            .collect();
        let mut backlogs = vec![Limit::Unbounded; tandem.servers.len()];
        for number in &tandem.order {
            let server = &tandem.servers[*number];
            let crossing: Vec<_> = tandem.crossing(*number).collect();
            let all = crossing.iter().map(|(flow, _)| arrivals[*flow].as_ref());
            let all = sum(all, algebra)?;
            backlogs[*number] =
                Deviations::of(all.as_ref(), Some(&server.service), algebra)?.backlog;
            let mut leaving = arrivals.clone();
            for (flow, hop) in &crossing {
                let others = crossing.iter().filter(|(other, _)| other != flow);
                let others = sum(others.map(|(other, _)| arrivals[*other].as_ref()), algebra)?;
                let what = format!(
                    "what server {} leaves to flow {}",
                    server.name, tandem.flows[*flow].name
                );
                let service = match others {
                    None => None,
                    Some(others) => {
                        residual(server, &others, algebra).map_err(self::algebra(&what))?
                    }
                };
                let arrival = arrivals[*flow].clone();
                let deviations = Deviations::of(arrival.as_ref(), service.as_ref(), algebra)?;
                leaving[*flow] = match (&arrival, &service) {
                    (Some(arrival), Some(service)) => {
                        output(arrival, service, algebra).map_err(self::algebra(&what))?
                    }
                    _ => None,
                };
                hops[*flow][*hop] = Some(Hop {
                    server: *number,
                    arrival,
                    service,
                    delay: deviations.delay,
                    backlog: deviations.backlog,
                });
            }
            arrivals = leaving;
        }
        Ok(Separated { hops, backlogs })
    }
}

/// All traffic of a server as one flow, in order of arrival.
struct Total {
    /// By server; `None` where a server before it, or itself, does not serve in order of arrival.
    delays: Vec<Option<Limit>>,
}

impl Total {
    fn of(tandem: &Tandem, algebra: &Algebra) -> Result<Self, TandemError> {
        // Outside: whether anything is known at all; inside: whether it is bounded.
        let mut arrivals: Vec<Option<Option<Curve>>> = (tandem.flows.iter())
            .map(|flow| Some(Some(flow.arrival.clone())))
            .collect();
        let mut delays = vec![None; tandem.servers.len()];
        for number in &tandem.order {
            let server = &tandem.servers[*number];
            let crossing: Vec<_> = tandem.crossing(*number).map(|(flow, _)| flow).collect();
            let known = crossing.iter().map(|flow| arrivals[*flow].as_ref());
            let known: Option<Vec<_>> = known.collect();
            // With one flow there is no order to be kept but its own.
            let ordered = server.fifo || crossing.len() <= 1;
            let Some(known) = known.filter(|_| ordered) else {
                for flow in crossing {
                    arrivals[flow] = None;
                }
                continue;
            };
            let all = sum(known.into_iter().map(Option::as_ref), algebra)?;
            let delay = Deviations::of(all.as_ref(), Some(&server.service), algebra)?.delay;
            for flow in crossing {
                let arrival = arrivals[flow].take().flatten();
                let later = match (&arrival, &delay) {
                    (Some(arrival), Limit::Finite(delay)) => {
                        let later = arrival.advanced(delay);
                        Some(later.map_err(self::algebra("what leaves a server"))?)
                    }
                    _ => None,
                };
                arrivals[flow] = Some(later);
            }
            delays[*number] = Some(delay);
        }
        Ok(Total { delays })
    }
}
