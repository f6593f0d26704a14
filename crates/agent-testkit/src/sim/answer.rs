//! One request in, one answer out.

use std::sync::Arc;
use std::time::Duration;

use agent_core::Usage;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use serde::Deserialize;
use serde_json::Value;

use super::account::{Asked, Counted};
use super::api_error::ApiError;
use super::body::{Begin, Broken, Ending, Play, SimBody};
use super::desk::Serving;
use super::limited::{Limited as Refused, limited};
use super::log::{RecordedRequest, Refusal, Served};
use super::wire::{self, Message, Wire};
use super::{Shared, echo, usage};
use crate::fault::{Fault, RawReply};
use crate::pick::assistant_messages;
use crate::script::Reply;

/// Answers a request; the error closes the connection without an answer.
pub(super) async fn answer(
    shared: Arc<Shared>,
    connection: u64,
    request: Request<Incoming>,
) -> Result<Response<SimBody>, Broken> {
    let at = shared.accounts.now();
    let (parts, body) = request.into_parts();
    let (body, too_large) = match Limited::new(body, MOST_BYTES).collect().await {
        Ok(body) => (body.to_bytes(), false),
        Err(error) if error.is::<LengthLimitError>() => (Bytes::new(), true),
        Err(_) => return Err(Broken),
    };
    let recorded = RecordedRequest::new(&parts, body.clone(), connection);
    let (method, path) = (recorded.method.clone(), recorded.path.clone());
    let number = shared.log.record(recorded);
    let request_id = format!("req_sim_{number:04}");
    let spoken = wire::of_path(parts.uri.path());
    let desk = Answering { shared: &shared, wire: spoken.unwrap_or(wire::DEFAULT), request_id, at };
    let answered = if too_large {
        Err(Outcome::Refused(desk.wire.usual_error(413)))
    } else if spoken.is_none() && shared.options.validate {
        Err(Outcome::Refused(desk.wire.usual_error(404)))
    } else {
        desk.answer(&parts, &body).await
    };
    let refused = matches!(answered, Err(Outcome::Refused(_)));
    let sent = match answered {
        Ok(sent) => Some(sent),
        Err(Outcome::Broken) => None,
        Err(Outcome::Refused(error)) => {
            let (status, message) = (error.status, error.message.clone());
            shared.log.refuse(Refusal { request: number, status, message });
            Some(desk.error(error))
        }
    };
    let status = sent.as_ref().map(|sent| sent.response.status().as_u16());
    let (usage, error) = sent.as_ref().map_or((None, None), |sent| (sent.usage.clone(), sent.error.clone()));
    let model = model(&body);
    shared.log.serve(Served { request: number, method, path, model, status, usage, error, refused });
    sent.map(|sent| sent.response).ok_or(Broken)
}

/// The model that a body names.
fn model(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Named {
        model: String,
    }
    serde_json::from_slice::<Named>(body).map_or_else(|_| String::new(), |named| named.model)
}

/// An answer on its way, and what is noted of it.
struct Sent {
    response: Response<SimBody>,
    usage: Option<Usage>,
    error: Option<String>,
}

/// Why there is no answer by the script.
enum Outcome {
    /// The connection is to be closed.
    Broken,
    /// The request, or the script, is wrong.
    Refused(ApiError),
}

/// One answer in the making.
struct Answering<'s> {
    shared: &'s Arc<Shared>,
    /// How the service that was asked speaks.
    wire: &'static dyn Wire,
    request_id: String,
    /// When the request arrived.
    at: Duration,
}

/// What is answered, and with what.
struct Turn<'t> {
    request: &'t Value,
    /// None for a body that is no request, where nothing is checked.
    asked: Option<&'t Asked>,
    /// Position in the script.
    position: usize,
    number: String,
    fault: Option<&'t Fault>,
}

impl Answering<'_> {
    async fn answer(&self, parts: &Parts, body: &Bytes) -> Result<Sent, Outcome> {
        if self.shared.options.validate {
            if parts.method != Method::POST {
                Err(self.wire.error(405, "Method Not Allowed"))?;
            }
            self.wire.check_head(&parts.headers)?;
        }
        let (request, asked) = self.read(parts, body)?;
        let turn = |position, fault| {
            let number = format!("{position:04}");
            Turn { request: &request, asked: asked.as_ref(), position, number, fault }
        };
        if self.wire.prewarms(&request) {
            let number = format!("warm_{:04}", assistant_messages(body));
            let nothing = Reply::default().stopping("max_tokens");
            return self.reply(Turn { number, ..turn(0, None) }, Some(&nothing)).await;
        }
        let serving = self.shared.desk.next(self.shared.options.pick, body);
        match serving.map_err(|error| ApiError::invalid(error.to_string()))? {
            Serving::Recorded(raw) => Ok(self.raw(raw)?),
            Serving::Echo(position) => self.reply(turn(position, None), None).await,
            Serving::Reply(_, _, Some(fault)) if !fault.begins(request["stream"] == true) => {
                self.instead(fault)
            }
            Serving::Reply(position, reply, fault) => self.reply(turn(position, fault), Some(reply)).await,
        }
    }

    /// The body as JSON, and as the prompt cache reads it.
    fn read(&self, parts: &Parts, body: &Bytes) -> Result<(Value, Option<Asked>), ApiError> {
        let accounts = &self.shared.accounts;
        if !self.shared.options.validate {
            let request = serde_json::from_slice(body).unwrap_or_default();
            return Ok((request, accounts.read(self.wire, body).ok()));
        }
        let request = wire::read(body)?;
        self.wire.check_body(&request)?;
        let mut asked = accounts.read(self.wire, body)?;
        let betas = parts.headers.get("anthropic-beta").and_then(|value| value.to_str().ok());
        let betas = betas.unwrap_or_default();
        self.wire.check_betas(&request, betas)?;
        asked.note_betas(betas);
        asked.check_thinking(&request)?;
        accounts.check(self.wire, &asked, &request)?;
        Ok((request, Some(asked)))
    }

    /// Accounts for the request and tells a reply; without one, what was asked.
    async fn reply(&self, turn: Turn<'_>, reply: Option<&Reply>) -> Result<Sent, Outcome> {
        let count =
            |asked| self.shared.accounts.take(self.wire, asked, (turn.request, &turn.number), self.at);
        let counted = turn.asked.map(count).transpose()?;
        let prompt = counted.as_ref().map(|counted| counted.outcome.usage.clone()).unwrap_or_default();
        let echo;
        let reply = if let Some(reply) = reply {
            reply
        } else {
            echo = echo::reply(turn.request, &prompt);
            &echo
        };
        if reply.hold && turn.fault.is_none() {
            self.hold().await?;
        }
        let usage = usage::account(prompt, reply);
        let (diagnosis, number, entries) = match counted {
            Some(Counted { diagnosis, number, entries, .. }) => (diagnosis, number, Some(entries)),
            None => (None, turn.number, None),
        };
        let message = Message {
            reply,
            position: turn.position,
            number: &number,
            model: turn.request["model"].as_str().unwrap_or("sim"),
            usage: &usage,
            request: turn.request,
            signature: turn.asked.map(|asked| asked.sign(reply)).unwrap_or_default(),
            diagnosis,
            tells_writes: turn.asked.is_some_and(Asked::tells_writes),
        };
        let begin = entries.map(|entries| Begin { shared: Arc::clone(self.shared), entries });
        let streamed = turn.request["stream"] == true;
        let response = if streamed {
            self.streamed(&message, turn.fault, begin)
        } else {
            self.whole(&message, turn.fault, begin)
        }?;
        Ok(Sent { response, usage: Some(usage), error: None })
    }

    /// Waits until the test lets the reply go.
    async fn hold(&self) -> Result<(), Outcome> {
        tokio::select! {
            permit = self.shared.holds.acquire() => permit.map(|permit| permit.forget()).map_err(|_| Outcome::Broken),
            () = self.shared.stop.cancelled() => Err(Outcome::Broken),
        }
    }

    /// The answer as events, with the fault where it belongs.
    fn streamed(
        &self,
        message: &Message<'_>,
        fault: Option<&Fault>,
        begin: Option<Begin>,
    ) -> Result<Response<SimBody>, Outcome> {
        let wire::Events { list: mut events, end: most } =
            self.wire.events(message, self.shared.options.delta_bytes);
        let mut delay = message.reply.delay_ms;
        let ending = match fault {
            None => Ending::Complete,
            Some(Fault::Cut { after }) => {
                events.truncate(most.min(*after));
                Ending::Cut
            }
            Some(Fault::Stall { after }) => {
                events.truncate(most.min(*after));
                Ending::Stall
            }
            Some(Fault::ErrorEvent { after, kind, message }) => {
                events.truncate(most.min(*after));
                let error = ApiError::of_kind(self.wire.usual(), kind, message);
                events.push(self.wire.error_event(&error, events.len()));
                Ending::Complete
            }
            Some(Fault::Slow { delay_ms }) => {
                delay = Some(*delay_ms);
                Ending::Complete
            }
            Some(Fault::Duplicate { event }) => {
                events = twice(events, *event);
                Ending::Complete
            }
            Some(other) => return self.instead(other).map(|sent| sent.response),
        };
        let body = self.play(events, ending, delay, begin);
        self.response(200, "text/event-stream; charset=utf-8", body).map_err(Outcome::Refused)
    }

    /// The answer as one object; faults inside a stream have their nearest kin.
    fn whole(
        &self,
        message: &Message<'_>,
        fault: Option<&Fault>,
        begin: Option<Begin>,
    ) -> Result<Response<SimBody>, Outcome> {
        let json = Bytes::from(self.wire.json(message)?);
        let delay = message.reply.delay_ms;
        let half = json.slice(..json.len() / 2);
        let body = match fault {
            None | Some(Fault::Duplicate { .. }) if delay.is_none() => {
                begin.iter().for_each(Begin::now);
                Full::new(json).map_err(|never| match never {}).boxed_unsync()
            }
            None | Some(Fault::Duplicate { .. }) => self.play(vec![json], Ending::Complete, delay, begin),
            Some(Fault::Slow { delay_ms }) => self.play(vec![json], Ending::Complete, Some(*delay_ms), begin),
            Some(Fault::Cut { .. }) => self.play(vec![half], Ending::Cut, delay, begin),
            Some(Fault::Stall { .. }) => self.play(vec![half], Ending::Stall, delay, begin),
            Some(other) => return self.instead(other).map(|sent| sent.response),
        };
        self.response(200, "application/json", body).map_err(Outcome::Refused)
    }

    /// Faults that leave nothing of the reply.
    fn instead(&self, fault: &Fault) -> Result<Sent, Outcome> {
        match fault {
            Fault::Status { status, retry_after, message } => {
                let mut error = ApiError::of_status(self.wire.usual(), *status, message.as_deref());
                if let Some(seconds) = retry_after {
                    error = error.with("retry-after", seconds.to_string());
                }
                status_code(*status)?;
                Ok(self.error(error))
            }
            Fault::RateLimited { wait_ms, told, status } => {
                status_code(*status)?;
                match limited(self.wire, *status, *wait_ms, *told) {
                    Refused::Error(error) => Ok(self.error(error)),
                    Refused::Raw(raw) => Ok(self.raw(&raw)?),
                }
            }
            Fault::Overflow { wording } => match wording.raw() {
                Some(raw) => Ok(self.raw(&raw)?),
                None => Ok(self.error(self.wire.overflow(210_000, 200_000))),
            },
            Fault::ErrorEvent { kind, message, .. } => {
                Ok(self.error(ApiError::of_kind(self.wire.usual(), kind, message)))
            }
            Fault::Raw(raw) => Ok(self.raw(raw)?),
            Fault::Hangup
            | Fault::Cut { .. }
            | Fault::Stall { .. }
            | Fault::Slow { .. }
            | Fault::Duplicate { .. } => Err(Outcome::Broken),
        }
    }

    fn raw(&self, raw: &RawReply) -> Result<Sent, ApiError> {
        let body = self.play(vec![raw.body.clone()], Ending::Complete, None, None);
        let mut response = Response::new(body);
        *response.status_mut() = status_code(raw.status)?;
        for (name, value) in raw.headers.iter().filter(|(name, _)| !is_framing(name)) {
            let header = HeaderName::try_from(name).ok().zip(HeaderValue::try_from(value).ok());
            let (name, value) = header.ok_or_else(|| {
                ApiError::invalid(format!(
                    "the recorded header {name:?} is not valid HTTP: mend the recording"
                ))
            })?;
            response.headers_mut().append(name, value);
        }
        let error = (raw.status >= 400).then(|| String::from_utf8_lossy(&raw.body).into_owned());
        Ok(Sent { response, usage: None, error })
    }

    fn play(
        &self,
        frames: Vec<Bytes>,
        ending: Ending,
        delay_ms: Option<u64>,
        begin: Option<Begin>,
    ) -> SimBody {
        let (stop, delay) = (self.shared.stop.clone(), delay_ms.map(Duration::from_millis));
        let play = Play { frames: frames.into(), ending, delay, begin, stop };
        play.chunked(self.shared.options.chunk_bytes).body()
    }

    fn error(&self, error: ApiError) -> Sent {
        let body = Full::new(Bytes::from(self.wire.error_body(&error, &self.request_id)));
        let mut response =
            self.plain("application/json", body.map_err(|never| match never {}).boxed_unsync());
        *response.status_mut() =
            StatusCode::from_u16(error.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        for (name, value) in &error.headers {
            if let Ok(value) = HeaderValue::from_str(value) {
                response.headers_mut().insert(*name, value);
            }
        }
        Sent { response, usage: None, error: Some(error.message) }
    }

    fn response(
        &self,
        status: u16,
        media: &'static str,
        body: SimBody,
    ) -> Result<Response<SimBody>, ApiError> {
        let mut response = self.plain(media, body);
        *response.status_mut() = status_code(status)?;
        Ok(response)
    }

    fn plain(&self, media: &'static str, body: SimBody) -> Response<SimBody> {
        let mut response = Response::new(body);
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media));
        if let Ok(id) = HeaderValue::from_str(&self.request_id) {
            response.headers_mut().insert(self.wire.id_header(), id);
        }
        response
    }
}

/// The events with one of them, or each, twice in a row.
fn twice(events: Vec<Bytes>, which: Option<usize>) -> Vec<Bytes> {
    let times = |at: usize| if which.is_none_or(|which| which == at) { 2 } else { 1 };
    let repeated = events.into_iter().enumerate();
    repeated.flat_map(|(at, event)| std::iter::repeat_n(event, times(at))).collect()
}

fn status_code(status: u16) -> Result<StatusCode, ApiError> {
    StatusCode::from_u16(status).map_err(|_| {
        ApiError::invalid(format!("the script asks for status {status}: a status lies between 100 and 999"))
    })
}

/// Headers that say how the recorded bytes were framed, which is not how they are sent here.
fn is_framing(name: &str) -> bool {
    let framing = ["content-length", "transfer-encoding", "connection", "keep-alive"];
    framing.iter().any(|header| name.eq_ignore_ascii_case(header))
}

impl From<ApiError> for Outcome {
    fn from(error: ApiError) -> Self {
        Self::Refused(error)
    }
}

/// The service takes bodies up to 32 MB.
const MOST_BYTES: usize = 32 * 1024 * 1024;
