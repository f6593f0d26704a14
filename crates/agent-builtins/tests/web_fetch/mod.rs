//! Pages from real servers on this machine, under names that a table gives them.

mod addresses;
mod pages;
mod redirects;
mod requests;

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_builtins::{AllowedHost, Lookup, PrivateAddresses, WebFetchConfig, web_fetch};
use agent_core::{CallId, RawJson};
use agent_tools::{PermissionRule, Permissions, Proposal, ToolCx, Verdict};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::call;

/// Answers each path with the bytes written down for it.
struct Server {
    port: u16,
    /// The heads of all requests.
    seen: Arc<Mutex<Vec<String>>>,
    /// How many connections the other side has closed before the answer was over.
    hung_up: Arc<AtomicUsize>,
}

#[derive(Clone)]
enum Answer {
    Whole(Vec<u8>),
    /// The head, then these bytes until nobody listens.
    Endless(Vec<u8>, Vec<u8>),
    /// These bytes, then silence.
    Silent(Vec<u8>),
}

/// Names of this test.
#[derive(Debug, Default)]
struct Table {
    names: BTreeMap<&'static str, Vec<IpAddr>>,
    asked: AtomicUsize,
    /// What every second look-up is told.
    rebound: Option<IpAddr>,
}

#[async_trait::async_trait]
impl Lookup for Table {
    async fn lookup(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let before = self.asked.fetch_add(1, Ordering::SeqCst);
        if let Some(rebound) = self.rebound.filter(|_| before > 0) {
            return Ok(vec![rebound]);
        }
        let known = self.names.get(host).cloned();
        known.ok_or_else(|| io::Error::other("no such host in the table"))
    }
}

impl Server {
    async fn start(answers: impl Fn(&str, u16) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (seen, hung_up) = (Arc::default(), Arc::default());
        let server = Self { port, seen: Arc::clone(&seen), hung_up: Arc::clone(&hung_up) };
        let answers = Arc::new(answers);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (answers, seen, hung_up) =
                    (Arc::clone(&answers), Arc::clone(&seen), Arc::clone(&hung_up));
                tokio::spawn(async move {
                    let was_left = serve(stream, &*answers, port, &seen).await.is_err();
                    hung_up.fetch_add(usize::from(was_left), Ordering::SeqCst);
                });
            }
        });
        server
    }

    fn url(&self, host: &str, path: &str) -> String {
        format!("http://{host}:{}{path}", self.port)
    }

    fn requests(&self) -> usize {
        self.seen.lock().unwrap().len()
    }
}

/// One request and its answer.
async fn serve(
    mut stream: TcpStream,
    answers: &(impl Fn(&str, u16) -> Answer + Send + Sync),
    port: u16,
    seen: &Mutex<Vec<String>>,
) -> io::Result<()> {
    let head = head(&mut stream).await;
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    seen.lock().unwrap().push(head);
    answer(&mut stream, answers(&path, port)).await
}

async fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(head).unwrap()
}

async fn answer(stream: &mut TcpStream, answer: Answer) -> io::Result<()> {
    match answer {
        Answer::Whole(bytes) => stream.write_all(&bytes).await,
        Answer::Endless(head, bytes) => {
            stream.write_all(&head).await?;
            loop {
                stream.write_all(&bytes).await?;
            }
        }
        Answer::Silent(bytes) => {
            stream.write_all(&bytes).await?;
            // Ends only when the other side closes.
            stream.read_u8().await.map(drop)
        }
    }
}

fn response(status: &str, headers: &str, body: &[u8]) -> Answer {
    let head =
        format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n", body.len());
    Answer::Whole([head.as_bytes(), body].concat())
}

fn ok(kind: &str, body: impl AsRef<[u8]>) -> Answer {
    response("200 OK", &format!("Content-Type: {kind}\r\n"), body.as_ref())
}

fn redirect(to: &str) -> Answer {
    response("302 Found", &format!("Location: {to}\r\n"), b"")
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn packed(kind: &str, coding: &str, body: &[u8]) -> Answer {
    response("200 OK", &format!("Content-Type: {kind}\r\nContent-Encoding: {coding}\r\n"), body)
}

/// `docs.test` and `other.test` are this machine, and only `docs.test` may be reached.
fn config() -> WebFetchConfig {
    let here = vec![IpAddr::V4(Ipv4Addr::LOCALHOST)];
    let names = [
        ("docs.test", here.clone()),
        ("other.test", here.clone()),
        ("localhost", here),
        ("mixed.test", vec!["93.184.215.14".parse().unwrap(), "10.0.0.7".parse().unwrap()]),
        ("metadata.test", vec!["169.254.169.254".parse().unwrap()]),
    ];
    let table = Table { names: names.into(), ..Table::default() };
    WebFetchConfig {
        private: PrivateAddresses::Only(vec!["docs.test".parse().unwrap()]),
        timeout: Duration::from_secs(20),
        lookup: Arc::new(table),
        ..WebFetchConfig::default()
    }
}

async fn run(config: WebFetchConfig, input: Value) -> String {
    let cx = ToolCx::for_test("session", "call").unwrap();
    match call(&[web_fetch(config)], &cx, "web_fetch", &input).await {
        Ok(text) => text,
        Err(error) => format!("ERROR: {error}"),
    }
}

async fn fetch(url: &str) -> String {
    run(config(), json!({ "url": url })).await
}

/// The words of an answer, with the port of this run taken out.
fn portless(server: &Server, text: &str) -> String {
    text.replace(&format!(":{}", server.port), ":PORT")
}

/// Waits until so many connections were closed by the tool.
async fn left(server: &Server, connections: usize) {
    let all = async {
        while server.hung_up.load(Ordering::SeqCst) < connections {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), all).await.expect("no connection is kept");
}
