//! Tandems as TOML.
//!
//! ```toml
//! [[server]]
//! name = "router"
//! service = "ratency(4, 2)"   # rate, latency
//! strict = true               # the default; or false
//! order = "any"               # the default; or "fifo"
//!
//! [[flow]]
//! name = "video"
//! arrival = "bucket(1, 8)"    # rate, burst
//! path = ["router"]
//! ```

use serde::Deserialize;

use super::expression::curve;
use super::{Flow, Server, Tandem, TandemError};

/// Why a text is no tandem.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// It is no such TOML.
    #[error(
        "{0}; a tandem has [[server]]s with name and service, and [[flow]]s with name, arrival \
         and path"
    )]
    Toml(String),
    /// There is nothing to analyse.
    #[error("the tandem has no [[{0}]]: give at least one")]
    Empty(&'static str),
    /// Two of one name.
    #[error("two {0}s are named {1}: give each a name of its own")]
    Twice(&'static str, String),
    /// A curve that is none.
    #[error("the {kind} of {name}: {what}")]
    Curve {
        /// `arrival` or `service`.
        kind: &'static str,
        /// The flow or the server.
        name: String,
        /// What is wrong, and what is right.
        what: String,
    },
    /// A path over a server that is not there.
    #[error("the path of flow {flow} names server {server}, which is none; there are {known}")]
    Server {
        /// The flow.
        flow: String,
        /// What it names.
        server: String,
        /// The names that there are.
        known: String,
    },
    /// An order that is none.
    #[error("server {0} serves in the order `{1}`: write \"any\" or \"fifo\"")]
    Order(String, String),
    /// A tandem that cannot be analysed.
    #[error(transparent)]
    Tandem(#[from] TandemError),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    server: Vec<ServerRow>,
    #[serde(default)]
    flow: Vec<FlowRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerRow {
    name: String,
    service: String,
    #[serde(default = "yes")]
    strict: bool,
    #[serde(default)]
    order: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FlowRow {
    name: String,
    arrival: String,
    path: Vec<String>,
}

fn yes() -> bool {
    true
}

impl Tandem {
    /// Reads a tandem.
    ///
    /// # Errors
    /// [`DocumentError`].
    pub fn parse(text: &str) -> Result<Self, DocumentError> {
        let document: Document = toml::from_str(text).map_err(|error| {
            let before = error.span().map_or("", |span| &text[..span.start]);
            let line = 1 + before.matches('\n').count();
            DocumentError::Toml(format!("line {line}: {}", error.message()))
        })?;
        let Document { server, flow } = document;
        let names: Vec<String> = server.iter().map(|row| row.name.clone()).collect();
        if server.is_empty() || flow.is_empty() {
            let missing = if server.is_empty() { "server" } else { "flow" };
            return Err(DocumentError::Empty(missing));
        }
        once("server", names.iter())?;
        once("flow", flow.iter().map(|row| &row.name))?;
        let servers = server.into_iter().map(ServerRow::read);
        let servers = servers.collect::<Result<_, _>>()?;
        let flows = flow.into_iter().map(|row| row.read(&names));
        Ok(Tandem::new(servers, flows.collect::<Result<_, _>>()?)?)
    }
}

fn once<'a>(
    kind: &'static str,
    names: impl Iterator<Item = &'a String>,
) -> Result<(), DocumentError> {
    let mut seen = std::collections::HashSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(DocumentError::Twice(kind, name.clone()));
        }
    }
    Ok(())
}

impl ServerRow {
    fn read(self) -> Result<Server, DocumentError> {
        let service = curve(&self.service).map_err(|what| DocumentError::Curve {
            kind: "service",
            name: self.name.clone(),
            what,
        })?;
        let fifo = match self.order.as_deref() {
            None | Some("any") => false,
            Some("fifo") => true,
            Some(other) => return Err(DocumentError::Order(self.name, other.to_owned())),
        };
        Ok(Server {
            name: self.name,
            service,
            strict: self.strict,
            fifo,
        })
    }
}

impl FlowRow {
    fn read(self, names: &[String]) -> Result<Flow, DocumentError> {
        let arrival = curve(&self.arrival).map_err(|what| DocumentError::Curve {
            kind: "arrival",
            name: self.name.clone(),
            what,
        })?;
        let server = |server: &String| {
            let found = names.iter().position(|name| name == server);
            found.ok_or_else(|| DocumentError::Server {
                flow: self.name.clone(),
                server: server.clone(),
                known: names.join(", "),
            })
        };
        Ok(Flow {
            arrival,
            path: self.path.iter().map(server).collect::<Result<_, _>>()?,
            name: self.name,
        })
    }
}
