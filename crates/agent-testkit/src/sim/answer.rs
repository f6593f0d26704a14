//! One request in, one answer out.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use serde_json::Value;

use super::api_error::ApiError;
use super::body::{Broken, Ending, Play, SimBody};
use super::desk::Serving;
use super::log::{RecordedRequest, Refusal};
use super::wire::{self, Message, Wire};
use super::{Shared, usage};
use crate::fault::{Fault, RawReply};

/// Answers a request; the error closes the connection without an answer.
pub(super) async fn answer(
    shared: Arc<Shared>,
    connection: u64,
    request: Request<Incoming>,
) -> Result<Response<SimBody>, Broken> {
    let (parts, body) = request.into_parts();
    let (body, too_large) = match Limited::new(body, MOST_BYTES).collect().await {
        Ok(body) => (body.to_bytes(), false),
        Err(error) if error.is::<LengthLimitError>() => (Bytes::new(), true),
        Err(_) => return Err(Broken),
    };
    let number = shared.log.record(RecordedRequest::new(&parts, body.clone(), connection));
    let request_id = format!("req_sim_{number:04}");
    let spoken = wire::of_path(parts.uri.path());
    let desk = Answering { shared: &shared, wire: spoken.unwrap_or(wire::DEFAULT), request_id };
    let answered = if too_large {
        Err(Outcome::Refused(desk.wire.usual_error(413)))
    } else if spoken.is_none() && shared.options.validate {
        Err(Outcome::Refused(desk.wire.usual_error(404)))
    } else {
        desk.answer(&parts, &body).await
    };
    match answered {
        Ok(response) => Ok(response),
        Err(Outcome::Broken) => Err(Broken),
        Err(Outcome::Refused(error)) => {
            let (status, message) = (error.status, error.message.clone());
            shared.log.refuse(Refusal { request: number, status, message });
            Ok(desk.error(&error))
        }
    }
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
    shared: &'s Shared,
    /// How the service that was asked speaks.
    wire: &'static dyn Wire,
    request_id: String,
}

impl Answering<'_> {
    async fn answer(&self, parts: &Parts, body: &Bytes) -> Result<Response<SimBody>, Outcome> {
        if self.shared.options.validate {
            if parts.method != Method::POST {
                Err(self.wire.error(405, "Method Not Allowed"))?;
            }
            self.wire.check_head(&parts.headers)?;
        }
        let request = self.read(body)?;
        let serving = self.shared.desk.next(self.shared.options.pick, body);
        match serving.map_err(|error| ApiError::invalid(error.to_string()))? {
            Serving::Recorded(raw) => self.raw(raw),
            Serving::Reply(position, reply, fault) => {
                if reply.hold && fault.is_none() {
                    self.hold().await?;
                }
                let usage = usage::account(&request, reply);
                let model = request["model"].as_str().unwrap_or("sim");
                let message = Message { reply, position, model, usage: &usage, request: &request };
                let streamed = request["stream"] == true;
                if streamed { self.streamed(&message, fault) } else { self.whole(&message, fault) }
            }
        }
    }

    fn read(&self, body: &Bytes) -> Result<Value, ApiError> {
        if !self.shared.options.validate {
            return Ok(serde_json::from_slice(body).unwrap_or_default());
        }
        let request = wire::read(body)?;
        self.wire.check_body(&request)?;
        Ok(request)
    }

    /// Waits until the test lets the reply go.
    async fn hold(&self) -> Result<(), Outcome> {
        tokio::select! {
            permit = self.shared.holds.acquire() => permit.map(|permit| permit.forget()).map_err(|_| Outcome::Broken),
            () = self.shared.stop.cancelled() => Err(Outcome::Broken),
        }
    }

    /// The answer as events, with the fault where it belongs.
    fn streamed(&self, message: &Message<'_>, fault: Option<&Fault>) -> Result<Response<SimBody>, Outcome> {
        let wire::Events { list: mut events, end: most } =
            self.wire.events(message, self.shared.options.delta_bytes);
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
            Some(other) => return self.instead(other),
        };
        let delay = message.reply.delay_ms.map(Duration::from_millis);
        let body = self.play(events, ending, delay);
        self.response(200, "text/event-stream; charset=utf-8", body).map_err(Outcome::Refused)
    }

    /// The answer as one object; faults inside a stream have their nearest kin.
    fn whole(&self, message: &Message<'_>, fault: Option<&Fault>) -> Result<Response<SimBody>, Outcome> {
        let json = Bytes::from(self.wire.json(message)?);
        let delay = message.reply.delay_ms.map(Duration::from_millis);
        let half = json.slice(..json.len() / 2);
        let body = match fault {
            None if delay.is_none() => Full::new(json).map_err(|never| match never {}).boxed_unsync(),
            None => self.play(vec![json], Ending::Complete, delay),
            Some(Fault::Cut { .. }) => self.play(vec![half], Ending::Cut, delay),
            Some(Fault::Stall { .. }) => self.play(vec![half], Ending::Stall, delay),
            Some(Fault::ErrorEvent { kind, message, .. }) => {
                return Ok(self.error(&ApiError::of_kind(self.wire.usual(), kind, message)));
            }
            Some(other) => return self.instead(other),
        };
        self.response(200, "application/json", body).map_err(Outcome::Refused)
    }

    /// Faults that leave nothing of the reply.
    fn instead(&self, fault: &Fault) -> Result<Response<SimBody>, Outcome> {
        match fault {
            Fault::Status { status, retry_after, message } => {
                let mut error = ApiError::of_status(self.wire.usual(), *status, message.as_deref());
                error.retry_after = *retry_after;
                status_code(*status)?;
                Ok(self.error(&error))
            }
            Fault::Raw(raw) => self.raw(raw),
            Fault::Hangup | Fault::Cut { .. } | Fault::Stall { .. } | Fault::ErrorEvent { .. } => {
                Err(Outcome::Broken)
            }
        }
    }

    fn raw(&self, raw: &RawReply) -> Result<Response<SimBody>, Outcome> {
        let body = self.play(vec![raw.body.clone()], Ending::Complete, None);
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
        Ok(response)
    }

    fn play(&self, frames: Vec<Bytes>, ending: Ending, delay: Option<Duration>) -> SimBody {
        let stop = self.shared.stop.clone();
        let play = Play { frames: frames.into(), ending, delay, stop };
        play.chunked(self.shared.options.chunk_bytes).body()
    }

    fn error(&self, error: &ApiError) -> Response<SimBody> {
        let body = Full::new(Bytes::from(self.wire.error_body(error, &self.request_id)));
        let mut response =
            self.plain("application/json", body.map_err(|never| match never {}).boxed_unsync());
        *response.status_mut() =
            StatusCode::from_u16(error.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        if let Some(seconds) = error.retry_after {
            response.headers_mut().insert("retry-after", HeaderValue::from(seconds));
        }
        response
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
