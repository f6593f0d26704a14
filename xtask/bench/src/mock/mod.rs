//! The model's server: Anthropic's Messages as a stream, each event a chunk of its own, all there at once.
//!
//! It ends when its standard input does, so that it never outlives the program that started it.

mod answer;
mod marker;
mod verify;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

use crate::bench::Fault;

/// Serves until standard input ends; the first line of output is the address.
pub(crate) fn run() -> Result<(), Fault> {
    std::thread::spawn(|| {
        // Whatever ends the input ends us: its end, or an error.
        let _ended = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
        writeln!(std::io::stdout(), "http://{}", listener.local_addr()?)?;
        std::io::stdout().flush()?;
        let seen = Rc::new(Seen::default());
        loop {
            let (stream, _) = listener.accept().await?;
            seen.accepted.set(seen.accepted.get() + 1);
            tokio::task::spawn_local(connection(stream, Rc::clone(&seen)));
        }
    })
}

/// What the server was asked so far.
#[derive(Default)]
struct Seen {
    /// How many requests each session of each run has sent.
    runs: RefCell<BTreeMap<(String, usize), usize>>,
    /// Connections, without those that asked for this number.
    accepted: Cell<u64>,
}

async fn connection(stream: TcpStream, seen: Rc<Seen>) {
    // Without it small events may wait for each other; the answer is right either way.
    let _hint = stream.set_nodelay(true);
    let service = service_fn(|request| respond(request, Rc::clone(&seen)));
    // A connection ends with an error when its client goes away, which is how all of them end.
    let _ended = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn respond(request: Request<Incoming>, seen: Rc<Seen>) -> Result<Response<Events>, hyper::Error> {
    if request.uri().path() == ACCEPTED {
        seen.accepted.set(seen.accepted.get().saturating_sub(1));
        let told = Bytes::from(seen.accepted.get().to_string());
        return Ok(response(StatusCode::OK, "text/plain", [told].into()));
    }
    let is_messages = request.uri().path() == "/v1/messages";
    let body = request.into_body().collect().await?.to_bytes();
    let answered = match marker::find(&body) {
        Some(found) if is_messages => {
            let step = next_step(&seen, &found);
            let checked = if found.verify { verify::check(&body, step) } else { Ok(()) };
            checked.map(|()| answer::events(step, step < found.steps))
        }
        _ => Err("send POST /v1/messages with the marker of the benchmark in the first message".to_owned()),
    };
    Ok(match answered {
        Ok(events) => response(StatusCode::OK, "text/event-stream", events),
        Err(problem) => response(StatusCode::BAD_REQUEST, "application/json", [refusal(&problem)].into()),
    })
}

fn next_step(seen: &Seen, found: &marker::Marker) -> usize {
    let mut runs = seen.runs.borrow_mut();
    let step = runs.entry((found.run.clone(), found.session)).or_default();
    *step += 1;
    *step
}

fn refusal(problem: &str) -> Bytes {
    let error = serde_json::json!({ "type": "invalid_request_error", "message": problem });
    Bytes::from(serde_json::json!({ "type": "error", "error": error }).to_string())
}

fn response(status: StatusCode, kind: &'static str, events: VecDeque<Bytes>) -> Response<Events> {
    let mut response = Response::new(Events(events));
    *response.status_mut() = status;
    response.headers_mut().insert(hyper::header::CONTENT_TYPE, hyper::header::HeaderValue::from_static(kind));
    response
}

/// Where the number of connections so far is told.
pub(crate) const ACCEPTED: &str = "/accepted";

/// A body of chunks that are all ready.
struct Events(VecDeque<Bytes>);

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(|chunk| Ok(Frame::data(chunk))))
    }
}
