//! A plain HTTP client that keeps its connection and sees each frame.

use agent_testkit::SimProvider;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{HeaderMap, Request};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

pub(crate) struct Client {
    sender: SendRequest<Full<Bytes>>,
}

/// An answer as far as it came.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) frames: Vec<Bytes>,
    /// Whether the body ended as HTTP says.
    pub(crate) complete: bool,
}

pub(crate) const KEYS: [(&str, &str); 2] = [("x-api-key", "secret-key"), ("anthropic-version", "2023-06-01")];

impl Client {
    pub(crate) async fn connect(sim: &SimProvider) -> Self {
        let stream = TcpStream::connect(sim.address()).await.unwrap();
        let (sender, connection) = handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Self { sender }
    }

    /// Sends a request; the error says that the connection was closed without an answer.
    pub(crate) async fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<Answer, hyper::Error> {
        self.sender.ready().await?;
        let mut request = Request::builder().method(method).uri(path).header("host", "sim");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::copy_from_slice(body.as_bytes()))).unwrap();
        let response = self.sender.send_request(request).await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let mut body = response.into_body();
        let (mut frames, mut complete) = (Vec::new(), true);
        while let Some(frame) = body.frame().await {
            match frame {
                Ok(frame) => frames.extend(frame.into_data().ok()),
                Err(_) => complete = false,
            }
        }
        Ok(Answer { status, headers, frames, complete })
    }

    pub(crate) async fn post(&mut self, body: &str) -> Answer {
        self.send("POST", "/v1/messages", &KEYS, body).await.unwrap()
    }

    /// Asks a service of OpenAI.
    pub(crate) async fn post_to(&mut self, path: &str, body: &str) -> Answer {
        self.send("POST", path, &BEARER, body).await.unwrap()
    }
}

/// The header with a key that OpenAI's services want.
pub(crate) const BEARER: [(&str, &str); 1] = [("authorization", "Bearer secret-key")];

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.frames.concat()).unwrap()
    }

    /// Names of the events, with the kind of a delta behind a colon.
    pub(crate) fn events(&self) -> Vec<String> {
        let text = self.text();
        let events = text.split("\n\n").filter(|event| !event.is_empty()).map(|event| {
            let (name, data) = event.split_once('\n').unwrap();
            let name = name.strip_prefix("event: ").unwrap();
            let data: serde_json::Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
            assert_eq!(data["type"], name, "the name of an event is its type");
            match data["delta"]["type"].as_str() {
                Some(kind) => format!("{name}:{kind}"),
                None => name.to_owned(),
            }
        });
        events.collect()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.text()).unwrap()
    }
}

/// A request with the user's first words and this many exchanges after it.
pub(crate) fn ask(exchanges: usize, stream: bool) -> String {
    let more =
        r#",{"role":"assistant","content":"so far"},{"role":"user","content":"go on"}"#.repeat(exchanges);
    format!(
        r#"{{"model":"claude-x","max_tokens":64,"messages":[{{"role":"user","content":"hello"}}{more}],"stream":{stream}}}"#
    )
}
