//! The live page: `GET /` the page, `GET /view` the latest view as JSON.
//!
//! Invariant: however many look at the page, the heap is looked at once an interval.

use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::page::{CELLS, page};
use crate::view::{View, Watcher};

/// The latest view of a heap, which several may ask for.
#[derive(Clone)]
pub struct Latest {
    view: Arc<Mutex<Result<View, String>>>,
    every: u64,
}

impl Latest {
    /// Looks at a heap for the first time; the page asks for another view `every` milliseconds.
    ///
    /// # Errors
    /// Those of [`Watcher::look`].
    pub fn new(watcher: &mut Watcher, every: u64) -> Result<Self, metes_board::Error> {
        let view = watcher.look(CELLS)?;
        Ok(Latest {
            view: Arc::new(Mutex::new(Ok(view))),
            every,
        })
    }

    /// Looks again; whether the heap is still there. O(pages).
    pub fn look(&self, watcher: &mut Watcher) -> bool {
        let view = watcher.look(CELLS).map_err(|error| error.to_string());
        let goes_on = view.as_ref().is_ok_and(|view| !view.process.ended);
        *self.view.lock().unwrap_or_else(PoisonError::into_inner) = view;
        goes_on
    }

    fn get(&self) -> Result<View, String> {
        let view = self.view.lock().unwrap_or_else(PoisonError::into_inner);
        view.clone()
    }
}

/// Answers for the page; whoever serves it sees to who may ask.
pub fn router(latest: Latest) -> Router {
    Router::new()
        .route("/", get(root))
        .route("/view", get(view))
        .with_state(latest)
}

fn answer(kind: &'static str, text: String) -> Response {
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (headers, Body::from(text)).into_response()
}

fn failed(why: String) -> Response {
    (StatusCode::INTERNAL_SERVER_ERROR, why).into_response()
}

async fn root(State(latest): State<Latest>) -> Response {
    match latest.get() {
        Ok(view) => answer("text/html; charset=utf-8", page(&view, Some(latest.every))),
        Err(why) => failed(why),
    }
}

async fn view(State(latest): State<Latest>) -> Response {
    match latest.get().map(|view| serde_json::to_string(&view)) {
        Ok(Ok(text)) => answer("application/json", text),
        Ok(Err(error)) => failed(error.to_string()),
        Err(why) => failed(why),
    }
}
