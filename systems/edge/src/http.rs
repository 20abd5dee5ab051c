//! The host over HTTP: requests to functions, deployment, figures.
//!
//! | request | answer |
//! | --- | --- |
//! | `POST /functions/NAME/invoke` | what the function answers to the body |
//! | `PUT /functions?manifest=N` | deploys: N bytes of `function.toml`, then the module; with `&samples=M,…` samples of so many bytes between them |
//! | `GET /functions`, `GET /functions/NAME` | figures |
//! | `DELETE /functions/NAME` | takes it away |
//! | `GET /host` | scheduling, memory, certificate |
//!
//! *Invariant:* every error is a document `{"error": {"kind", "message", "remedy"}}`; a client that goes away, or is slow,
//! holds no worker, and its connection for a bounded time.

mod failed;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{FromRequestParts, Path, RawQuery, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response as Answer};
use axum::routing::{get, post, put};
use http_body_util::LengthLimitError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::host::{Host, HostError};
use crate::outcome::Outcome;
use crate::station::Response;
use failed::document;
pub(crate) use failed::{Failed, Kind};

/// Largest manifest in bytes.
const MANIFEST: usize = 64 << 10;
/// Largest samples in bytes, together.
const SAMPLES: usize = 64 << 20;

/// What clients may take of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpLimits {
    /// How long a client may take for each: the head of its request, the body, taking its answer, and doing nothing.
    pub timeout: Duration,
    /// Most connections at once, over all sockets.
    pub connections: usize,
    /// Most deployments and removals at once; they follow one after the other, and hold their modules until then.
    pub deployments: usize,
}

impl Default for HttpLimits {
    fn default() -> Self {
        HttpLimits {
            timeout: Duration::from_secs(10),
            connections: 256,
            deployments: 4,
        }
    }
}

/// A host, and what its clients may take.
#[derive(Clone)]
struct Service {
    host: Host,
    limits: HttpLimits,
    changes: Arc<Semaphore>,
}

impl Service {
    /// Leave to change the set of functions, as long as it is held.
    fn change(&self) -> Result<OwnedSemaphorePermit, Failed> {
        let permit = self.changes.clone().try_acquire_owned();
        permit.map_err(|_| {
            let message = format!(
                "{} deployments or removals are under way, as many as may be",
                self.limits.deployments
            );
            Failed::new(Kind::Deploying, message)
        })
    }
}

/// The name of a function in a path.
struct Name(String);

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = Failed;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Name, Failed> {
        let name = Path::<String>::from_request_parts(parts, state).await;
        let Path(name) = name.map_err(|error| Failed::new(Kind::Request, error.body_text()))?;
        Ok(Name(name))
    }
}

/// Answers for a host.
pub fn router(host: Host, limits: HttpLimits) -> Router {
    let service = Service {
        host,
        changes: Arc::new(Semaphore::new(limits.deployments)),
        limits,
    };
    Router::new()
        .route("/functions", put(deploy).get(list))
        .route("/functions/{name}", get(told).delete(remove))
        .route("/functions/{name}/invoke", post(invoke))
        .route("/host", get(about))
        .fallback(async || Failed::new(Kind::Path, "there is no such path"))
        .method_not_allowed_fallback(async || {
            Failed::new(Kind::Method, "the path is there, but not with this method")
        })
        .with_state(service)
}

/// Answers that there are too many connections, whatever is asked.
pub(crate) fn full(connections: usize) -> Router {
    Router::new().fallback(async move || {
        let message = format!("{connections} connections are open, as many as may be");
        Failed::new(Kind::Connections, message)
    })
}

/// The body of a request, of at most so many bytes.
async fn body(
    headers: &HeaderMap,
    body: Body,
    limit: u64,
    timeout: Duration,
    too_large: impl Fn() -> Failed,
) -> Result<Vec<u8>, Failed> {
    let length = headers.get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > limit) {
        return Err(too_large());
    }
    match tokio::time::timeout(timeout, to_bytes(body, limit as usize)).await {
        Ok(Ok(bytes)) => Ok(bytes.into()),
        Ok(Err(error)) => Err(match error.into_inner().is::<LengthLimitError>() {
            true => too_large(),
            false => Failed::new(
                Kind::Request,
                "the body is cut off, or is not coded as its head says",
            ),
        }),
        Err(_) => Err(slow("body", timeout)),
    }
}

/// A request that does not arrive.
pub(crate) fn slow(what: &str, timeout: Duration) -> Failed {
    let message = format!(
        "the {what} of the request did not arrive in {} ms",
        timeout.as_millis()
    );
    Failed::new(Kind::Slow, message)
}

async fn invoke(
    State(service): State<Service>,
    Name(name): Name,
    headers: HeaderMap,
    content: Body,
) -> Result<Answer, Failed> {
    let host = service.host;
    let limit = host.largest(&name)?;
    let too_large = || {
        Failed::from(HostError::TooLarge {
            name: name.clone(),
            limit,
        })
    };
    let timeout = service.limits.timeout;
    let input = body(&headers, content, limit, timeout, too_large).await?;
    let (send, receive) = tokio::sync::oneshot::channel();
    // A client that has gone away leaves nobody to tell.
    host.invoke(&name, input, move |response| drop(send.send(response)))?;
    let response = receive.await.map_err(|_| HostError::Ending)?;
    answer(response)
}

fn answer(response: Response) -> Result<Answer, Failed> {
    let failed =
        |kind, message: String| Err(Failed::new(kind, message).with_stderr(&response.errors));
    match &response.invocation.outcome {
        Outcome::Done { exit: 0 } => {}
        Outcome::Done { exit } => {
            return failed(Kind::Exit, format!("the function ended with status {exit}"));
        }
        Outcome::Trap(trap) => {
            return failed(Kind::Trap, format!("the function trapped: {trap}"));
        }
        Outcome::Overrun { late_ns } => {
            let message =
                format!("the function used up its budget, and was stopped {late_ns} ns later");
            return failed(Kind::Overrun, message);
        }
        Outcome::Refused(refusal) => return failed(Kind::Refused, refusal.to_string()),
    }
    let mut headers = HeaderMap::new();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/octet-stream"),
    );
    for (name, value) in [
        ("metes-time-ns", response.invocation.time_ns),
        ("metes-response-ns", response.response_ns),
        ("metes-missed", u64::from(response.missed)),
    ] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from(value));
    }
    Ok((headers, response.output).into_response())
}

/// How many bytes of a deployment are the manifest and each sample; the module follows.
struct Lengths {
    manifest: usize,
    samples: Vec<usize>,
}

impl Lengths {
    /// Of `manifest=N` or `manifest=N&samples=M,M`.
    fn read(query: &str) -> Option<Lengths> {
        let (manifest, samples) = match query.split_once("&samples=") {
            Some((manifest, samples)) => (manifest, samples.split(',').collect()),
            None => (query, Vec::new()),
        };
        let number = |text: &str| text.parse().ok().filter(|bytes| *bytes <= SAMPLES);
        Some(Lengths {
            manifest: number(manifest.strip_prefix("manifest=")?)?,
            samples: samples.into_iter().map(number).collect::<Option<_>>()?,
        })
    }

    /// The parts of a body: manifest, samples, module.
    fn part(&self, bytes: &[u8]) -> Option<(String, Vec<Vec<u8>>, Vec<u8>)> {
        let (manifest, mut rest) = bytes.split_at_checked(self.manifest)?;
        let manifest = str::from_utf8(manifest).ok()?;
        let mut samples = Vec::new();
        for length in &self.samples {
            let (sample, behind) = rest.split_at_checked(*length)?;
            samples.push(sample.to_vec());
            rest = behind;
        }
        (manifest.len() <= MANIFEST).then(|| (manifest.to_owned(), samples, rest.to_vec()))
    }
}

async fn deploy(
    State(service): State<Service>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    content: Body,
) -> Result<Answer, Failed> {
    let change = service.change()?;
    let host = service.host;
    let query = query.unwrap_or_default();
    let lengths = Lengths::read(&query);
    let samples = lengths
        .iter()
        .flat_map(|lengths| &lengths.samples)
        .sum::<usize>();
    let limit = (host.module_bytes() + MANIFEST + samples.min(SAMPLES)) as u64;
    let too_large = || {
        let message = format!("a deployment has at most {limit} bytes: strip the module");
        Failed::new(Kind::TooLarge, message)
    };
    let timeout = service.limits.timeout;
    let bytes = body(&headers, content, limit, timeout, too_large).await?;
    let parted = lengths.and_then(|lengths| lengths.part(&bytes));
    let (manifest, samples, wasm) = parted.ok_or_else(|| {
        let message = "give ?manifest=N, and &samples=M,M where it names samples: the body is N bytes of function.toml, \
                       M of each sample, and the module behind them";
        Failed::new(Kind::Manifest, message)
    })?;
    // Compilers take a while; who goes away before they have ended leaves their place taken.
    let deployed = tokio::task::spawn_blocking(move || {
        let _change = change;
        host.deploy_with(&manifest, &samples, &wasm)
    });
    let told = deployed.await.map_err(|_| HostError::Ending)??;
    Ok(document(StatusCode::CREATED, &told))
}

async fn list(State(service): State<Service>) -> Answer {
    document(StatusCode::OK, &service.host.list())
}

async fn told(State(service): State<Service>, Name(name): Name) -> Result<Answer, Failed> {
    Ok(document(StatusCode::OK, &service.host.function(&name)?))
}

async fn remove(State(service): State<Service>, Name(name): Name) -> Result<Answer, Failed> {
    let change = service.change()?;
    let removed = tokio::task::spawn_blocking(move || {
        let _change = change;
        service.host.remove(&name)
    });
    removed.await.map_err(|_| HostError::Ending)??;
    Ok(document(
        StatusCode::OK,
        &serde_json::json!({ "removed": true }),
    ))
}

async fn about(State(service): State<Service>) -> Answer {
    document(StatusCode::OK, &service.host.told())
}
