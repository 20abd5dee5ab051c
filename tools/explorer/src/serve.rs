//! The explorer on this machine: the page, and heaps emitted on request.
//!
//! Routes: `GET /` the page; `GET /export/{csv,xlsx,gp,dat}`; `POST /emit` with
//! `{"number": n}` emits that configuration below `emitted/` of the folder;
//! `GET /emitted/…` the files of those.
//!
//! Invariant: only requests that name this machine as their host, and pages of
//! this server as their origin, are answered; only files that were emitted here
//! are given out.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path as Segment, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};

use crate::error::Error;
use crate::export::{self, Form};
use crate::folder::Folder;
use crate::page;
use crate::patient::Patient;

/// Writes the code of a heap, given as the text of its `heap.toml`, below a
/// directory; the files, or in a sentence why not.
pub type Emit = dyn Fn(&str, &Path) -> Result<Vec<PathBuf>, String> + Send + Sync;
/// The `heap.toml` of any configuration, by number.
pub type Describe = dyn Fn(u64) -> Option<String> + Send + Sync;

/// What a client that has begun to ask has left when the server ends.
const GRACE: Duration = Duration::from_secs(1);

/// A server that has its port and is not yet answering.
pub struct Server {
    listener: TcpListener,
    router: Router,
    address: SocketAddr,
}

struct Shared {
    folder: Folder,
    page: Bytes,
    emit: Box<Emit>,
    describe: Box<Describe>,
    /// Path below `/emitted/` and the file behind it.
    emitted: Mutex<BTreeMap<String, PathBuf>>,
}

impl Server {
    /// Takes a port of this machine (0: any) and renders the page.
    ///
    /// # Errors
    /// [`Error::PortInUse`], [`Error::Io`], [`Error::Content`].
    pub fn bind(
        folder: Folder,
        port: u16,
        emit: Box<Emit>,
        describe: Box<Describe>,
    ) -> Result<Server, Error> {
        let router = router(folder, emit, describe)?;
        let here = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Server::over(here, router).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => Error::PortInUse { port },
            _ => Error::io("listen on", Path::new(&format!("port {port}")))(error),
        })
    }

    /// Takes an address for pages of another kind. Who may ask is for `router` to decide, by
    /// [`only_here`].
    ///
    /// # Errors
    /// That of the system.
    pub fn over(address: SocketAddr, router: Router) -> io::Result<Server> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        Ok(Server {
            listener,
            router,
            address,
        })
    }

    /// Where it will answer.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `ended` does, and what was asked by then within a second
    /// more, whatever clients do.
    ///
    /// # Errors
    /// [`Error::Io`] when the system gives no threads or sockets.
    pub fn run(self, ended: impl Future<Output = ()> + Send + 'static) -> Result<(), Error> {
        let failed = |error| Error::io("serve", Path::new("the page"))(error);
        self.listener.set_nonblocking(true).map_err(failed)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.map_err(failed)?;
        let served = runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(self.listener).map_err(failed)?;
            let (told, mut over) = tokio::sync::watch::channel(false);
            let ended = async move {
                ended.await;
                // Nobody listens any more when all was answered at once.
                let _ = told.send(true);
            };
            let late = async move {
                // The sender goes only when serving does.
                let _ = over.changed().await;
                tokio::time::sleep(GRACE).await;
            };
            let patient = Patient(listener);
            let router = self.router.layer(middleware::map_response(guarded));
            tokio::select! {
                served = axum::serve(patient, router).with_graceful_shutdown(ended) => {
                    served.map_err(failed)
                }
                () = late => Ok(()),
            }
        });
        // What still works on an answer is not waited for.
        runtime.shutdown_background();
        served
    }
}

/// The routes over a folder.
///
/// # Errors
/// [`Error::Content`] when the page cannot be rendered.
pub fn router(folder: Folder, emit: Box<Emit>, describe: Box<Describe>) -> Result<Router, Error> {
    let page = Bytes::from(page::page(&folder, true)?);
    let shared = Arc::new(Shared {
        folder,
        page,
        emit,
        describe,
        emitted: Mutex::default(),
    });
    Ok(Router::new()
        .route("/", get(root))
        .route("/export/{file}", get(exported))
        .route("/heap/{number}", get(heap))
        .route("/emit", post(emitted))
        .route("/emitted/{*path}", get(file))
        .layer(middleware::from_fn(local))
        .with_state(shared))
}

/// Has a router answer only requests that name this machine as their host, or the address
/// (no name, which another site could give to this machine) at which it is served.
pub fn only_here(router: Router, address: IpAddr) -> Router {
    let check = move |request: Request, next: Next| async move {
        let host = request.headers().get(header::HOST);
        let host = host.and_then(|host| host.to_str().ok());
        let here = host.and_then(|host| {
            let named = host.parse().map(|host: SocketAddr| host.ip());
            let plain = || host.trim_matches(['[', ']']).parse::<IpAddr>();
            named.or_else(|_| plain()).ok()
        });
        let served = here.is_some_and(|here| address.is_unspecified() || here == address);
        let host = host.is_some_and(|host| served || is_local(host));
        match host && own_origin(request.headers()) {
            true => next.run(request).await,
            false => refuse(
                StatusCode::FORBIDDEN,
                "only requests for this machine by its address are answered",
            ),
        }
    };
    router.layer(middleware::from_fn(check))
}

/// Refuses what another site makes a browser ask of this machine.
async fn local(request: Request, next: Next) -> Response {
    if trusted(request.headers()) {
        return next.run(request).await;
    }
    refuse(
        StatusCode::FORBIDDEN,
        "only pages of this server are answered",
    )
}

fn trusted(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).map(HeaderValue::to_str);
    matches!(host, Some(Ok(host)) if is_local(host)) && own_origin(headers)
}

fn is_local(host: &str) -> bool {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    ["localhost", "127.0.0.1"].contains(&name)
}

/// Whether the request comes from a page of this server, if from a page at all.
fn own_origin(headers: &HeaderMap) -> bool {
    let said = |name| headers.get(name).map(HeaderValue::to_str);
    match (said(header::ORIGIN), said(header::HOST)) {
        (None, _) => true,
        (Some(Ok(origin)), Some(Ok(host))) => origin.strip_prefix("http://") == Some(host),
        _ => false,
    }
}

fn refuse(status: StatusCode, why: impl Into<String>) -> Response {
    let text = json!({ "error": why.into() }).to_string();
    (status, [(header::CONTENT_TYPE, "application/json")], text).into_response()
}

/// Tells browsers to take answers for what they are said to be, and to show
/// pages in no frame of another.
async fn guarded(mut response: Response) -> Response {
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::CONTENT_SECURITY_POLICY, "frame-ancestors 'none'"),
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        let headers = response.headers_mut();
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
    response
}

async fn root(State(shared): State<Arc<Shared>>) -> Response {
    let mut headers = HeaderMap::new();
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, html);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    (headers, Body::from(shared.page.clone())).into_response()
}

async fn exported(State(shared): State<Arc<Shared>>, Segment(file): Segment<String>) -> Response {
    let (form, wanted, kind) = match file.as_str() {
        "results.csv" => (Form::Csv, 0, "text/csv; charset=utf-8"),
        "results.xlsx" => (
            Form::Xlsx,
            0,
            "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        ),
        "results.gp" => (Form::Gnuplot, 0, "text/plain; charset=utf-8"),
        "results.dat" => (Form::Gnuplot, 1, "text/plain; charset=utf-8"),
        _ => return refuse(StatusCode::NOT_FOUND, format!("there is no export {file}")),
    };
    let made = tokio::task::spawn_blocking(move || export::bytes(&shared.folder, form)).await;
    match made {
        Ok(Ok(mut files)) => {
            let name = format!("attachment; filename=\"{file}\"");
            let headers = [
                (header::CONTENT_TYPE, kind.to_owned()),
                (header::CONTENT_DISPOSITION, name),
            ];
            (headers, files.swap_remove(wanted)).into_response()
        }
        Ok(Err(error)) => refuse(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()),
        Err(_) => refuse(StatusCode::INTERNAL_SERVER_ERROR, "the export failed"),
    }
}

impl Shared {
    /// The `heap.toml` of a configuration.
    fn heap(&self, number: u64) -> Result<String, String> {
        let known = self.folder.heap(number).map(str::to_owned);
        match known.or_else(|| (self.describe)(number)) {
            Some(heap) => Ok(heap),
            None if self.folder.columns.row_of(number).is_none() => {
                Err(format!("there is no configuration {number}"))
            }
            None => Err(format!(
                "this folder holds the heap.toml of the front and of the named heaps only, and \
                 configuration {number} is neither"
            )),
        }
    }
}

async fn heap(State(shared): State<Arc<Shared>>, Segment(number): Segment<u64>) -> Response {
    match shared.heap(number) {
        Ok(toml) => ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], toml).into_response(),
        Err(why) => refuse(StatusCode::NOT_FOUND, why),
    }
}

async fn emitted(State(shared): State<Arc<Shared>>, body: Bytes) -> Response {
    let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
    let Some(number) = asked.get("number").and_then(Value::as_u64) else {
        let why = "the number of a configuration is expected: {\"number\": 1}";
        return refuse(StatusCode::BAD_REQUEST, why);
    };
    let done = tokio::task::spawn_blocking(move || shared.write(number)).await;
    match done {
        Ok(Ok(answer)) => (
            [(header::CONTENT_TYPE, "application/json")],
            answer.to_string(),
        )
            .into_response(),
        Ok(Err((status, why))) => refuse(status, why),
        Err(_) => refuse(StatusCode::INTERNAL_SERVER_ERROR, "the emission failed"),
    }
}

impl Shared {
    fn write(&self, number: u64) -> Result<Value, (StatusCode, String)> {
        let heap = self.heap(number);
        let heap = heap.map_err(|why| (StatusCode::NOT_FOUND, why))?;
        let name = format!("{number:03}");
        let directory = self.folder.directory.join("emitted").join(&name);
        let way = [self.folder.directory.join("emitted"), directory.clone()];
        if let Some(link) = way.iter().find(|path| path.is_symlink()) {
            let why = format!("{} is a link: nothing is written there", link.display());
            return Err((StatusCode::UNPROCESSABLE_ENTITY, why));
        }
        let files = (self.emit)(&heap, &directory);
        let files = files.map_err(|why| (StatusCode::UNPROCESSABLE_ENTITY, why))?;
        let mut known = self.emitted.lock().unwrap_or_else(PoisonError::into_inner);
        let mut listed = Vec::new();
        for file in files {
            let below = file.strip_prefix(&directory).unwrap_or(&file);
            let url = format!("{name}/{}", below.display());
            listed.push(
                json!({ "path": below.display().to_string(), "url": format!("/emitted/{url}") }),
            );
            known.insert(url, file);
        }
        Ok(json!({ "directory": directory, "files": listed }))
    }
}

async fn file(State(shared): State<Arc<Shared>>, Segment(path): Segment<String>) -> Response {
    let known = shared
        .emitted
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let Some(file) = known.get(&path).cloned() else {
        return refuse(StatusCode::NOT_FOUND, "no such file was emitted here");
    };
    drop(known);
    let name = file
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    match std::fs::read(&file) {
        Ok(content) => {
            let headers = [
                (header::CONTENT_TYPE, "text/plain; charset=utf-8".to_owned()),
                (
                    header::CONTENT_DISPOSITION,
                    format!("attachment; filename=\"{name}\""),
                ),
            ];
            (headers, content).into_response()
        }
        Err(error) => refuse(StatusCode::NOT_FOUND, format!("{name}: {error}")),
    }
}
