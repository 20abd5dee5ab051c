//! The host over HTTP: requests to functions, deployment, figures.
//!
//! | request | answer |
//! | --- | --- |
//! | `POST /functions/NAME/invoke` | what the function answers to the body |
//! | `PUT /functions?manifest=N` | deploys: N bytes of `function.toml`, then the module |
//! | `GET /functions`, `GET /functions/NAME` | figures |
//! | `DELETE /functions/NAME` | takes it away |
//! | `GET /host` | scheduling, memory, certificate |
//!
//! *Invariant:* every error is a document `{"error": {"kind", "message"}}`; a client that goes away, or is slow, holds no
//! worker.

use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response as Answer};
use axum::routing::{get, post, put};
use serde::Serialize;

use crate::host::{Host, HostError};
use crate::outcome::Outcome;
use crate::station::Response;

/// How long a client may take to send its request.
const PATIENCE: Duration = Duration::from_secs(10);
/// Largest manifest in bytes.
const MANIFEST: usize = 64 << 10;

/// An error as it is answered.
#[derive(Debug, Serialize)]
struct Failed {
    #[serde(skip)]
    status: StatusCode,
    kind: &'static str,
    message: String,
    /// What the function wrote to stderr.
    #[serde(skip_serializing_if = "String::is_empty")]
    stderr: String,
}

impl Failed {
    fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Failed {
        Failed {
            status,
            kind,
            message: message.into(),
            stderr: String::new(),
        }
    }
}

impl From<HostError> for Failed {
    fn from(error: HostError) -> Failed {
        let (status, kind) = match &error {
            HostError::Manifest(_) => (StatusCode::BAD_REQUEST, "manifest"),
            HostError::Module(_) => (StatusCode::UNPROCESSABLE_ENTITY, "module"),
            HostError::Exists(_) => (StatusCode::CONFLICT, "exists"),
            HostError::Unknown(_) => (StatusCode::NOT_FOUND, "unknown"),
            HostError::NotAdmitted(_) => (StatusCode::CONFLICT, "not-admitted"),
            HostError::Budget { .. } | HostError::ShortBudget { .. } => {
                (StatusCode::UNPROCESSABLE_ENTITY, "budget")
            }
            HostError::TooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "too-large"),
            HostError::TooMany { .. } => (StatusCode::TOO_MANY_REQUESTS, "too-many"),
            HostError::Engine(_) | HostError::Worker { .. } => {
                (StatusCode::INTERNAL_SERVER_ERROR, "host")
            }
            HostError::Ending => (StatusCode::SERVICE_UNAVAILABLE, "ending"),
        };
        Failed::new(status, kind, error.to_string())
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Answer {
        document(self.status, &serde_json::json!({ "error": self }))
    }
}

fn document(status: StatusCode, document: &impl Serialize) -> Answer {
    match serde_json::to_vec(document) {
        Ok(text) => {
            let kind = [(header::CONTENT_TYPE, "application/json")];
            (status, kind, text).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// Answers for a host.
pub fn router(host: Host) -> Router {
    Router::new()
        .route("/functions", put(deploy).get(list))
        .route("/functions/{name}", get(told).delete(remove))
        .route("/functions/{name}/invoke", post(invoke))
        .route("/host", get(about))
        .fallback(async || Failed::new(StatusCode::NOT_FOUND, "path", "there is no such path"))
        .method_not_allowed_fallback(async || {
            Failed::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "method",
                "this path has other methods",
            )
        })
        .with_state(host)
}

/// The body of a request, of at most so many bytes.
async fn body(
    headers: &HeaderMap,
    body: Body,
    limit: u64,
    too_large: impl Fn() -> Failed,
) -> Result<Vec<u8>, Failed> {
    let length = headers.get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > limit) {
        return Err(too_large());
    }
    let read = tokio::time::timeout(PATIENCE, to_bytes(body, limit as usize)).await;
    match read {
        Ok(Ok(bytes)) => Ok(bytes.into()),
        // A body that is cut off has no reader for this answer.
        Ok(Err(_)) => Err(too_large()),
        Err(_) => Err(Failed::new(
            StatusCode::REQUEST_TIMEOUT,
            "slow",
            format!("the request did not arrive in {} s", PATIENCE.as_secs()),
        )),
    }
}

async fn invoke(
    State(host): State<Host>,
    Path(name): Path<String>,
    headers: HeaderMap,
    content: Body,
) -> Result<Answer, Failed> {
    let limit = host.largest(&name)?;
    let too_large = || {
        Failed::from(HostError::TooLarge {
            name: name.clone(),
            limit,
        })
    };
    let input = body(&headers, content, limit, too_large).await?;
    let (send, receive) = tokio::sync::oneshot::channel();
    // A client that has gone away leaves nobody to tell.
    host.invoke(&name, input, move |response| drop(send.send(response)))?;
    let response = receive.await.map_err(|_| HostError::Ending)?;
    answer(response)
}

fn answer(response: Response) -> Result<Answer, Failed> {
    let failed = |status, kind, message: String| {
        let mut failed = Failed::new(status, kind, message);
        failed.stderr = String::from_utf8_lossy(&response.errors).into_owned();
        Err(failed)
    };
    let status = StatusCode::INTERNAL_SERVER_ERROR;
    match &response.invocation.outcome {
        Outcome::Done { exit: 0 } => {}
        Outcome::Done { exit } => {
            return failed(
                status,
                "exit",
                format!("the function ended with status {exit}"),
            );
        }
        Outcome::Trap(trap) => {
            return failed(status, "trap", format!("the function trapped: {trap}"));
        }
        Outcome::Overrun { late_ns } => {
            let message =
                format!("the function used up its budget, and was stopped {late_ns} ns later");
            return failed(StatusCode::GATEWAY_TIMEOUT, "overrun", message);
        }
        Outcome::Refused(refusal) => {
            return failed(
                StatusCode::SERVICE_UNAVAILABLE,
                "refused",
                refusal.to_string(),
            );
        }
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

async fn deploy(
    State(host): State<Host>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    content: Body,
) -> Result<Answer, Failed> {
    let limit = host.module_bytes() as u64 + MANIFEST as u64;
    let too_large = || {
        let message = format!("a deployment has at most {limit} bytes: strip the module");
        Failed::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", message)
    };
    let bytes = body(&headers, content, limit, too_large).await?;
    // How many bytes of the body are the manifest; the module follows.
    let length = query
        .as_deref()
        .and_then(|query| query.strip_prefix("manifest="));
    let length = length.and_then(|length| length.parse::<usize>().ok());
    let parted = length.and_then(|length| bytes.split_at_checked(length));
    let parted = parted.and_then(|(manifest, wasm)| {
        let manifest = str::from_utf8(manifest).ok()?;
        (manifest.len() <= MANIFEST).then(|| (manifest.to_owned(), wasm.to_vec()))
    });
    let (manifest, wasm) = parted.ok_or_else(|| {
        let message =
            "give ?manifest=N: the body is N bytes of function.toml, and the module behind it";
        Failed::new(StatusCode::BAD_REQUEST, "manifest", message)
    })?;
    // Compilers take a while.
    let deployed = tokio::task::spawn_blocking(move || host.deploy(&manifest, &wasm)).await;
    let told = deployed.map_err(|_| HostError::Ending)??;
    Ok(document(StatusCode::CREATED, &told))
}

async fn list(State(host): State<Host>) -> Answer {
    document(StatusCode::OK, &host.list())
}

async fn told(State(host): State<Host>, Path(name): Path<String>) -> Result<Answer, Failed> {
    Ok(document(StatusCode::OK, &host.function(&name)?))
}

async fn remove(State(host): State<Host>, Path(name): Path<String>) -> Result<Answer, Failed> {
    let removed = tokio::task::spawn_blocking(move || host.remove(&name)).await;
    removed.map_err(|_| HostError::Ending)??;
    Ok(document(
        StatusCode::OK,
        &serde_json::json!({ "removed": true }),
    ))
}

async fn about(State(host): State<Host>) -> Answer {
    document(StatusCode::OK, &host.told())
}
