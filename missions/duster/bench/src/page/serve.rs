//! The live page: `GET /` the page, `GET /science?after=N` what is new since so many packets, as JSON.
//!
//! *Invariant:* however many look at the page, telemetry is taken once.

use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::{PLACES_SERVED, Science};

/// Milliseconds between two looks of a page.
const EVERY: u64 = 500;

/// The science of a mission that is under way, which many may ask for.
#[derive(Clone, Debug)]
pub struct Live {
    science: Arc<Mutex<Science>>,
    title: Arc<str>,
}

impl Live {
    /// Nothing yet, under a title.
    #[must_use]
    pub fn new(title: &str) -> Self {
        Live {
            science: Arc::new(Mutex::new(Science::new(PLACES_SERVED))),
            title: title.into(),
        }
    }

    /// Takes bytes of the telemetry line as they come.
    pub fn take_bytes(&self, bytes: &[u8]) {
        self.with(|science| science.take_bytes(bytes));
    }

    /// Says that no more comes.
    pub fn end(&self) {
        self.with(Science::end);
    }

    fn with<T>(&self, act: impl FnOnce(&mut Science) -> T) -> T {
        act(&mut self.science.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Answers for the page; whoever serves it sees to who may ask.
    pub fn router(&self) -> Router {
        Router::new()
            .route("/", get(root))
            .route("/science", get(view))
            .with_state(self.clone())
    }
}

async fn root(State(live): State<Live>) -> Response {
    let page = live.with(|science| science.page(&live.title, Some(EVERY)));
    answer("text/html; charset=utf-8", page)
}

async fn view(State(live): State<Live>, RawQuery(query): RawQuery) -> Response {
    let after = query
        .as_deref()
        .and_then(|query| query.strip_prefix("after="));
    let after = after.and_then(|after| after.parse().ok()).unwrap_or(0);
    answer(
        "application/json",
        live.with(|science| science.view(after)).to_string(),
    )
}

fn answer(kind: &'static str, text: String) -> Response {
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (headers, Body::from(text)).into_response()
}
