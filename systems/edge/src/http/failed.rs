//! Errors as they are answered.
//!
//! *Invariant:* every error that a client gets is made here: a document with its kind, what happened, and what to do; its
//! status follows from its kind.

use std::borrow::Cow;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::host::HostError;

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Manifest,
    Request,
    Path,
    Unknown,
    Method,
    Slow,
    Exists,
    NotAdmitted,
    Full,
    TooLarge,
    Module,
    Budget,
    TooMany,
    Deploying,
    Head,
    Trap,
    Exit,
    Host,
    Refused,
    Ending,
    Connections,
    Overrun,
    Version,
}

impl Kind {
    /// The status, what the kind is called, and what to do.
    fn said(self) -> (StatusCode, &'static str, &'static str) {
        use StatusCode as S;
        match self {
            Kind::Manifest => (
                S::BAD_REQUEST,
                "manifest",
                "correct function.toml as the message says; it is the first part of the body, its length is in ?manifest=BYTES",
            ),
            Kind::Request => (
                S::BAD_REQUEST,
                "request",
                "send a request of HTTP/1.1 whose head and body are whole",
            ),
            Kind::Path => (
                S::NOT_FOUND,
                "path",
                "ask for /functions, /functions/NAME, /functions/NAME/invoke or /host",
            ),
            Kind::Unknown => (
                S::NOT_FOUND,
                "unknown",
                "GET /functions names those that are there",
            ),
            Kind::Method => (
                S::METHOD_NOT_ALLOWED,
                "method",
                "use a method that the header `allow` names",
            ),
            Kind::Slow => (
                S::REQUEST_TIMEOUT,
                "slow",
                "send head and body without a pause, or let the host wait longer (--timeout)",
            ),
            Kind::Exists => (
                S::CONFLICT,
                "exists",
                "DELETE the function first, or give this one another name",
            ),
            Kind::NotAdmitted => (
                S::CONFLICT,
                "not-admitted",
                "make one of the changes that the message names",
            ),
            Kind::Full => (
                S::CONFLICT,
                "full",
                "DELETE a function that is not needed, or let the host take more (--functions)",
            ),
            Kind::TooLarge => (
                S::PAYLOAD_TOO_LARGE,
                "too-large",
                "send less, or raise the limit that the message names",
            ),
            Kind::Module => (
                S::UNPROCESSABLE_ENTITY,
                "module",
                "build the module again as the message says",
            ),
            Kind::Budget => (
                S::UNPROCESSABLE_ENTITY,
                "budget",
                "raise the budget in function.toml",
            ),
            Kind::TooMany => (
                S::TOO_MANY_REQUESTS,
                "too-many",
                "send one request each period of the function",
            ),
            Kind::Deploying => (
                S::TOO_MANY_REQUESTS,
                "deploying",
                "send it again when another deployment has ended, or let the host take more at once (--deployments)",
            ),
            Kind::Head => (
                S::REQUEST_HEADER_FIELDS_TOO_LARGE,
                "head",
                "send a short address, and fewer and shorter headers: the host needs none but content-length",
            ),
            Kind::Trap => (
                S::INTERNAL_SERVER_ERROR,
                "trap",
                "correct the function: what it wrote to stderr is in `stderr`",
            ),
            Kind::Exit => (
                S::INTERNAL_SERVER_ERROR,
                "exit",
                "send what the function takes: what it wrote to stderr is in `stderr`",
            ),
            Kind::Host => (
                S::INTERNAL_SERVER_ERROR,
                "host",
                "do what the message says, and start the host again",
            ),
            Kind::Refused => (
                S::SERVICE_UNAVAILABLE,
                "refused",
                "DELETE the function, and deploy it again",
            ),
            Kind::Ending => (
                S::SERVICE_UNAVAILABLE,
                "ending",
                "send it again when the host has been started again",
            ),
            Kind::Connections => (
                S::SERVICE_UNAVAILABLE,
                "connections",
                "close connections that are idle, or let the host have more (--connections)",
            ),
            Kind::Overrun => (
                S::GATEWAY_TIMEOUT,
                "overrun",
                "send a smaller request, or raise the budget in function.toml",
            ),
            Kind::Version => (S::HTTP_VERSION_NOT_SUPPORTED, "version", "speak HTTP/1.1"),
        }
    }
}

/// An error as it is answered.
#[derive(Debug)]
pub(crate) struct Failed {
    kind: Kind,
    message: Cow<'static, str>,
    stderr: String,
}

impl Failed {
    pub(crate) fn new(kind: Kind, message: impl Into<Cow<'static, str>>) -> Failed {
        Failed {
            kind,
            message: message.into(),
            stderr: String::new(),
        }
    }

    /// With what the function wrote to stderr.
    pub(crate) fn with_stderr(mut self, bytes: &[u8]) -> Failed {
        self.stderr = String::from_utf8_lossy(bytes).into_owned();
        self
    }

    fn document(&self) -> serde_json::Value {
        let (_, kind, remedy) = self.kind.said();
        let mut error =
            serde_json::json!({ "kind": kind, "message": self.message, "remedy": remedy });
        if !self.stderr.is_empty() {
            error["stderr"] = self.stderr.as_str().into();
        }
        serde_json::json!({ "error": error })
    }

    /// The whole answer as bytes, for a connection that ends with it.
    pub(crate) fn last_words(&self) -> Vec<u8> {
        let (status, ..) = self.kind.said();
        let body = self.document().to_string();
        format!(
            "HTTP/1.1 {} {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            status.as_u16(),
            status.canonical_reason().unwrap_or_default(),
            body.len()
        )
        .into_bytes()
    }
}

impl From<HostError> for Failed {
    fn from(error: HostError) -> Failed {
        let kind = match &error {
            HostError::Manifest(_) | HostError::Samples { .. } => Kind::Manifest,
            HostError::Module(_) => Kind::Module,
            HostError::Exists(_) => Kind::Exists,
            HostError::Unknown(_) => Kind::Unknown,
            HostError::NotAdmitted(_) => Kind::NotAdmitted,
            HostError::Budget { .. } | HostError::ShortBudget { .. } => Kind::Budget,
            HostError::Full { .. } => Kind::Full,
            HostError::TooLarge { .. } => Kind::TooLarge,
            HostError::TooMany { .. } => Kind::TooMany,
            HostError::Engine(_) | HostError::Worker { .. } => Kind::Host,
            HostError::Ending => Kind::Ending,
        };
        Failed::new(kind, error.to_string())
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        document(self.kind.said().0, &self.document())
    }
}

/// An answer that is a document.
pub(crate) fn document(status: StatusCode, document: &impl Serialize) -> Response {
    match serde_json::to_vec(document) {
        Ok(text) => {
            let kind = [(header::CONTENT_TYPE, "application/json")];
            (status, kind, text).into_response()
        }
        Err(error) => Failed::new(Kind::Host, format!("the answer cannot be written: {error}"))
            .into_response(),
    }
}
