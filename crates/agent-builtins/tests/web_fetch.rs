//! Pages from real servers on this machine, under names that a table gives them.

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
                    let mut stream = stream;
                    let head = head(&mut stream).await;
                    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                    seen.lock().unwrap().push(head);
                    if answer(&mut stream, answers(&path, port)).await.is_err() {
                        hung_up.fetch_add(1, Ordering::SeqCst);
                    }
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

#[tokio::test]
async fn a_page_in_each_format() {
    const HTML: &str = "<title>Knots</title><nav>menu</nav><h1>Bowline</h1><p>See <a href='/b'>it</a>.";
    let server = Server::start(|path, _| match path {
        "/page" => ok("text/html; charset=utf-8", HTML),
        "/json" => ok("application/json", "{\"b\": 1,\n \"a\": 2}"),
        "/plain" => ok("text/plain; charset=iso-8859-1", b"<b>caf\xe9</b>\n"),
        "/untyped" => response("200 OK", "", b"<!doctype html><p>hi"),
        "/empty" => ok("text/html", "<script>fill()</script>"),
        _ => ok("text/plain", b"\xff\xfeh\0i\0"),
    })
    .await;
    let shown = async |path: &str, more: Value| {
        let mut input = json!({ "url": server.url("docs.test", path) });
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        portless(&server, &run(config(), input).await)
    };
    insta::assert_snapshot!(shown("/page", json!({})).await, @"
    URL: http://docs.test:PORT/page
    Status: 200 OK
    Content type: text/html
    Title: Knots

    # Bowline

    See [it](http://docs.test:PORT/b).
    ");
    insta::assert_snapshot!(shown("/page#part", json!({"format": "text"})).await, @"
    URL: http://docs.test:PORT/page
    Status: 200 OK
    Content type: text/html
    Title: Knots

    Bowline
    See it.
    ");
    insta::assert_snapshot!(shown("/page", json!({"format": "html"})).await, @"
    URL: http://docs.test:PORT/page
    Status: 200 OK
    Content type: text/html

    <title>Knots</title><nav>menu</nav><h1>Bowline</h1><p>See <a href='/b'>it</a>.
    ");
    insta::assert_snapshot!(shown("/json", json!({"format": "markdown"})).await, @r#"
    URL: http://docs.test:PORT/json
    Status: 200 OK
    Content type: application/json

    {"b": 1,
     "a": 2}
    "#);
    insta::assert_snapshot!(shown("/plain", json!({})).await, @"
    URL: http://docs.test:PORT/plain
    Status: 200 OK
    Content type: text/plain

    <b>café</b>
    ");
    insta::assert_snapshot!(shown("/untyped", json!({})).await, @"
    URL: http://docs.test:PORT/untyped
    Status: 200 OK
    Content type: not named

    hi
    ");
    insta::assert_snapshot!(shown("/empty", json!({})).await, @"
    URL: http://docs.test:PORT/empty
    Status: 200 OK
    Content type: text/html

    [the page has no text; a page that a program in the browser fills cannot be read, so look for its data or for another page]
    ");
    insta::assert_snapshot!(shown("/bom", json!({})).await, @"
    URL: http://docs.test:PORT/bom
    Status: 200 OK
    Content type: text/plain

    hi
    ");
}

#[tokio::test]
async fn a_long_page_says_what_is_left() {
    let server = Server::start(|path, _| match path {
        "/long" => ok("text/plain", "\u{e9}".repeat(50_000)),
        _ => ok("text/plain", "y".repeat(150_000)),
    })
    .await;
    let check = async |path: &str, most: Option<usize>, chars: usize, expect: &str| {
        let url = server.url("docs.test", path);
        let shown = run(config(), json!({ "url": url, "max_chars": most })).await;
        let body = shown.split_once("\n\n").unwrap().1;
        let (text, note) = body.split_once("\n\n").unwrap_or((body, ""));
        assert_eq!((text.chars().count(), note), (chars, expect));
    };
    check(
        "/long",
        None,
        40_000,
        "[10000 of 50000 characters left; call again with max_chars 50000 to see all]",
    )
    .await;
    check("/long", Some(50_000), 50_000, "").await;
    check(
        "/long",
        Some(3),
        3,
        "[49997 of 50000 characters left; call again with max_chars 50000 to see all]",
    )
    .await;
    check("/more", Some(9), 9, "[149991 of 150000 characters left; call again with max_chars up to 100000, or fetch a page that says less]").await;
    check("/more", Some(900_000), 100_000, "[50000 of 150000 characters left; fetch a page that says less, or download it into a file with bash and search that]").await;
    let none = run(config(), json!({ "url": server.url("docs.test", "/long"), "max_chars": 0 })).await;
    assert!(none.starts_with("ERROR: A max_chars of 0 shows nothing"), "{none}");
}

#[tokio::test]
async fn nothing_but_the_request_is_sent() {
    let server = Server::start(|path, _| match path {
        "/" => response("302 Found", "Location: /next\r\nSet-Cookie: id=1\r\n", b""),
        _ => ok("text/plain", "here"),
    })
    .await;
    assert!(fetch(&server.url("docs.test", "/")).await.ends_with("here"));
    let heads = server.seen.lock().unwrap().join("");
    let heads = portless(&server, &heads).replace(env!("CARGO_PKG_VERSION"), "VERSION").replace('\r', "");
    insta::assert_snapshot!(heads, @"
    GET / HTTP/1.1
    accept: text/markdown, text/html;q=0.9, text/plain;q=0.8, */*;q=0.5
    accept-encoding: gzip
    user-agent: agent-builtins/VERSION
    host: docs.test:PORT

    GET /next HTTP/1.1
    accept: text/markdown, text/html;q=0.9, text/plain;q=0.8, */*;q=0.5
    accept-encoding: gzip
    user-agent: agent-builtins/VERSION
    host: docs.test:PORT
    ");
}

#[tokio::test]
async fn redirects_of_one_host_are_followed() {
    let server = Server::start(|path, port| {
        let at: usize = path.trim_start_matches(['/', 'n']).parse().unwrap_or_default();
        match path {
            "/circle" => redirect("/there"),
            "/there" => redirect(&format!("http://docs.test:{port}/circle#again")),
            "/dot" => redirect(&format!("http://docs.test.:{port}/n0")),
            "/nowhere" => response("302 Found", "", b"lost"),
            "/n0" => ok("text/plain", "the end"),
            _ => redirect(&format!("n{}", at - 1)),
        }
    })
    .await;
    let check = async |path: &str, expect: &str| {
        let before = server.requests();
        let shown = portless(&server, &fetch(&server.url("docs.test", path)).await);
        assert!(shown.contains(expect), "{path}: {shown}");
        server.requests() - before
    };
    assert_eq!(check("/n1", "URL: http://docs.test:PORT/n0\nStatus: 200 OK").await, 2);
    assert_eq!(check("/n10", "the end").await, 11);
    assert_eq!(
        check(
            "/n11",
            "ERROR: http://docs.test:PORT/n11 redirects more than 10 times. Call again with the address it came to: http://docs.test:PORT/n0"
        )
        .await,
        11
    );
    assert_eq!(check("/circle", "redirects in a circle, back to http://docs.test:PORT/circle").await, 2);
    assert_eq!(check("/nowhere", "answered 302 Found. Check the address. The body begins:\n\nlost").await, 1);
    assert!(check("/dot", "").await >= 1);
}

#[tokio::test]
async fn a_redirect_elsewhere_is_told_and_not_followed() {
    let other = Server::start(|_, _| ok("text/plain", "secret")).await;
    let port = other.port;
    let check = async |to: String, expect: &str| {
        let told = to.clone();
        let server = Server::start(move |_, _| redirect(&told)).await;
        let shown = portless(&server, &portless(&other, &fetch(&server.url("docs.test", "/")).await));
        assert!(
            shown.starts_with("ERROR: http://docs.test:PORT/ redirects, and that was not followed. "),
            "{shown}"
        );
        assert!(shown.contains(expect), "{to}: {shown}");
        assert_eq!((server.requests(), other.requests()), (1, 0), "{to}");
    };
    let host = "It leads to another host, for which there is no permission yet. If that is the page you want, call web_fetch again with: ";
    check(format!("http://other.test:{port}/a?b"), &format!("{host}http://other.test:PORT/a?b")).await;
    check("//other.test/a".to_owned(), &format!("{host}http://other.test/a")).await;
    check(format!("http://127.0.0.1:{port}/"), &format!("{host}http://127.0.0.1:PORT/")).await;
    check(format!("http://2130706433:{port}/"), &format!("{host}http://127.0.0.1:PORT/")).await;
    check(format!("http://sub.docs.test:{port}/"), &format!("{host}http://sub.docs.test:PORT/")).await;
    check("http://169.254.169.254/latest".to_owned(), &format!("{host}http://169.254.169.254/latest")).await;
    let port_words = "It leads to another scheme or port of the same host. If that is the page you want, call web_fetch again with: ";
    check(format!("http://docs.test:{port}/"), &format!("{port_words}http://docs.test:PORT/")).await;
    check("https://docs.test/".to_owned(), &format!("{port_words}https://docs.test/")).await;
    check("file:///etc/passwd".to_owned(), "only http and https can").await;
    check("ftp://docs.test/a".to_owned(), "only http and https can").await;
    check("javascript:alert(1)".to_owned(), "only http and https can").await;
    check("http://me:pw@docs.test/".to_owned(), "holds a user name or a password").await;
    check("http://docs.test:25/".to_owned(), "names a port that belongs to another protocol").await;
    check("http://[::1".to_owned(), "is no address").await;
}

#[tokio::test]
async fn every_spelling_of_a_forbidden_address_is_refused() {
    let server = Server::start(|_, _| ok("text/plain", "secret")).await;
    let hosts = [
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "0177.1",
        "017700000001",
        "127.255.255.254",
        "127.0.0.1.",
        "%31%32%37.0.0.1",
        "\u{ff11}27.0.0.1",
        "127\u{3002}0.0.1",
        "0x7F.0x0.0x0.0x1",
        "00000177.0.0.1",
        "0",
        "0.0.0.0",
        "0x0",
        "000",
        "0.1.2.3",
        "10.0.0.1",
        "10.1",
        "167772161",
        "0xa.1",
        "012.1",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "192.168.257",
        "3232235777",
        "0xc0a80101",
        "169.254.169.254",
        "2852039166",
        "0xa9fea9fe",
        "0251.0376.0251.0376",
        "169.254.43518",
        "100.64.0.1",
        "100.127.255.255",
        "192.0.0.1",
        "192.0.2.1",
        "198.18.0.1",
        "198.51.100.7",
        "203.0.113.9",
        "224.0.0.1",
        "239.255.255.250",
        "240.0.0.1",
        "255.255.255.255",
        "[::1]",
        "[::]",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::ffff:8.8.8.8]",
        "[::127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "[64:ff9b::a00:1]",
        "[64:ff9b:1::1]",
        "[2002:7f00:1::]",
        "[2002:c0a8:101::1]",
        "[2001::1]",
        "[fc00::1]",
        "[fd12:3456::1]",
        "[fe80::1]",
        "[fec0::1]",
        "[ff02::1]",
        "[2001:db8::1]",
        "[3fff::1]",
        "[100::1]",
        "localhost",
        "LOCALHOST",
        "localhost.",
        "other.test",
        "mixed.test",
        "metadata.test",
    ];
    assert!(hosts.len() >= 40);
    for host in hosts {
        let shown = fetch(&server.url(host, "/")).await;
        let is_refused = shown.contains("only public addresses may be fetched; nothing was sent");
        // A name that ends in a dot is another one in the table.
        assert!(is_refused || host == "localhost." && shown.contains("no such host"), "{host}: {shown}");
    }
    assert_eq!(server.requests(), 0);
    insta::assert_snapshot!(fetch("http://0x7f.1/").await, @"ERROR: 127.0.0.1 is an address of the loopback range, and only public addresses may be fetched; nothing was sent. Do not try another spelling: ask the user to allow this host, or use a public page.");
    insta::assert_snapshot!(fetch("https://mixed.test/").await, @"ERROR: mixed.test leads to 10.0.0.7, which is an address of the private range, and only public addresses may be fetched; nothing was sent. Do not try another spelling: ask the user to allow this host, or use a public page.");
    insta::assert_snapshot!(fetch("http://unknown.test/").await, @"ERROR: http://unknown.test/ could not be reached: no such host in the table. Check the spelling of the host and whether it serves http.");
}

#[tokio::test]
async fn addresses_that_are_none_of_the_web() {
    let check = async |url: &str, expect: &str| {
        let shown = fetch(url).await;
        assert!(shown.starts_with("ERROR: ") && shown.contains(expect), "{url}: {shown}");
        assert!(!shown.contains("s3cret"), "{shown}");
    };
    check(
        "docs.rs/serde",
        "`docs.rs/serde` is no address (relative URL without a base). Give the whole of it",
    )
    .await;
    check("", "is no address").await;
    check("http://", "is no address").await;
    check("http://a b/", "is no address").await;
    check("http://1.2.3.4.5/", "is no address").await;
    check("http://256.1.1.1/", "is no address").await;
    check("file:///etc/passwd", "For a file of the workspace use read_file").await;
    check("ftp://docs.test/", "only http and https can").await;
    check("data:text/plain,hi", "only http and https can").await;
    check("http://user:s3cret@docs.test/", "never sent").await;
    check("http://docs.test@127.0.0.1/", "never sent").await;
    check("http://docs.test:22/", "another protocol").await;
    check("http://docs.test:0/", "another protocol").await;
}

#[tokio::test]
async fn a_name_is_looked_up_once_and_that_address_is_connected_to() {
    let server = Server::start(|_, _| ok("text/plain", "here")).await;
    let names = [("docs.test", vec![IpAddr::V4(Ipv4Addr::LOCALHOST)])].into();
    let rebound = Some("127.0.0.2".parse().unwrap());
    let table = Arc::new(Table { names, rebound, ..Table::default() });
    let only: AllowedHost = "127.0.0.1/32".parse().unwrap();
    let private = PrivateAddresses::Only(vec![only]);
    let config = WebFetchConfig { private, lookup: Arc::clone(&table) as _, ..config() };
    let input = json!({ "url": server.url("docs.test", "/") });
    let shown = run(config.clone(), input.clone()).await;
    assert!(shown.ends_with("here"), "{shown}");
    assert_eq!(table.asked.load(Ordering::SeqCst), 1);
    let shown = run(config, input).await;
    assert!(shown.contains("docs.test leads to 127.0.0.2"), "{shown}");
    assert_eq!((table.asked.load(Ordering::SeqCst), server.requests()), (2, 1));
}

#[tokio::test]
async fn bodies_are_counted_as_they_will_be_read() {
    const MIB: usize = 1024 * 1024;
    let server = Server::start(|path, _| match path {
        "/packed" => packed("text/plain", "gzip", &gzip(b"small")),
        "/deflated" => {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(b"small").unwrap();
            packed("text/plain", "deflate", &encoder.finish().unwrap())
        }
        "/bomb" => packed("text/html", "gzip", &gzip(&vec![b'a'; 64 * MIB])),
        "/nothing" => {
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: gzip\r\n\r\n";
            Answer::Endless(head.into(), gzip(b"").repeat(1_000))
        }
        "/torn" => packed("text/plain", "gzip", &gzip(b"small and torn")[..20]),
        "/brotli" => packed("text/plain", "br", b"xx"),
        "/twice" => packed("text/plain", "gzip, gzip", &gzip(&gzip(b"x"))),
        "/declared" => Answer::Silent(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5242881\r\n\r\n".to_vec(),
        ),
        "/endless" => Answer::Endless(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n".to_vec(),
            vec![b'x'; 60_000],
        ),
        "/short" => Answer::Whole(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\nabc".to_vec(),
        ),
        "/whole" => ok("text/plain", vec![b'x'; 5 * MIB]),
        "/none" => packed("text/plain", "gzip", b""),
        _ => ok("text/plain", vec![b'x'; 5 * MIB + 1]),
    })
    .await;
    let check = async |path: &str, expect: &str| {
        let shown = fetch(&server.url("docs.test", path)).await;
        assert!(shown.contains(expect), "{path}: {}", &shown[..shown.len().min(300)]);
    };
    check("/packed", "\n\nsmall").await;
    check("/deflated", "\n\nsmall").await;
    for large in ["/bomb", "/nothing", "/declared", "/endless", "/larger"] {
        check(large, "ERROR: The body is larger than 5242880 bytes, so it is not shown.").await;
    }
    check("/whole", "[5202880 of 5242880 characters left").await;
    for torn in ["/torn", "/short"] {
        check(torn, "ERROR: The body broke off or cannot be unpacked (").await;
    }
    check("/brotli", "ERROR: The server packed the body as `br` though only gzip was asked for").await;
    check("/twice", "packed the body as `gzip, gzip`").await;
    check("/none", "[the page has no text").await;
}

#[tokio::test]
async fn what_is_no_text_is_not_shown() {
    let server = Server::start(|path, _| match path {
        "/a.png" => ok("image/png", b"\x89PNG"),
        "/a.pdf" => Answer::Silent(b"HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\n\r\n%PDF".to_vec()),
        _ => ok("text/plain", b"\x7fELF\0\0"),
    })
    .await;
    let shown = async |path: &str| portless(&server, &fetch(&server.url("docs.test", path)).await);
    insta::assert_snapshot!(shown("/a.png").await, @"ERROR: http://docs.test:PORT/a.png is no text but image/png, 4 bytes, so it cannot be shown. Look for the same as a web page, or download it into a file with bash and use a program for its kind.");
    insta::assert_snapshot!(shown("/a.pdf").await, @"ERROR: http://docs.test:PORT/a.pdf is no text but application/pdf, of unknown size, so it cannot be shown. Look for the same as a web page, or download it into a file with bash and use a program for its kind.");
    insta::assert_snapshot!(shown("/program").await, @"ERROR: http://docs.test:PORT/program is no text but text/plain, 6 bytes, so it cannot be shown. Look for the same as a web page, or download it into a file with bash and use a program for its kind.");
}

#[tokio::test]
async fn an_error_status_is_an_error_with_the_servers_words() {
    let server = Server::start(|path, _| match path {
        "/gone" => response(
            "404 Not Found",
            "Content-Type: text/html\r\n",
            b"<h1>No such page</h1><p>Try <b>search</b>.",
        ),
        "/broken" => {
            response("500 Internal Server Error", "Content-Type: text/plain\r\n", &vec![b'e'; 100_000])
        }
        "/busy" => response("429 Too Many Requests", "Content-Type: image/png\r\n", b"\0\0"),
        _ => response("403 Forbidden", "", b""),
    })
    .await;
    let shown = async |path: &str| portless(&server, &fetch(&server.url("docs.test", path)).await);
    insta::assert_snapshot!(shown("/gone").await, @"
    ERROR: http://docs.test:PORT/gone answered 404 Not Found. Check the address, or begin at a page above it. The body begins:

    No such page
    Try search.
    ");
    insta::assert_snapshot!(shown("/busy").await, @"ERROR: http://docs.test:PORT/busy answered 429 Too Many Requests. Wait before you ask this host again.");
    insta::assert_snapshot!(shown("/login").await, @"ERROR: http://docs.test:PORT/login answered 403 Forbidden. It wants a login or refuses programs, and none is sent: look for a public page.");
    let broken = shown("/broken").await;
    assert_eq!(broken.matches('e').count() / 1_000, 2, "2000 characters of the body");
}

#[tokio::test]
async fn a_server_that_is_slow_is_left_in_time() {
    let server = Server::start(|path, _| match path {
        "/head" => Answer::Silent(vec![]),
        _ => Answer::Silent(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nfirst".to_vec()),
    })
    .await;
    for path in ["/head", "/body"] {
        let config = WebFetchConfig { timeout: Duration::from_millis(200), ..config() };
        let shown = run(config, json!({ "url": server.url("docs.test", path) })).await;
        let expect = format!("ERROR: {} gave no whole answer within 200ms", server.url("docs.test", path));
        assert!(shown.starts_with(&expect), "{shown}");
    }
    left(&server, 2).await;
}

#[tokio::test]
async fn a_cancelled_call_drops_the_request() {
    let server = Server::start(|_, _| {
        Answer::Silent(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nfirst".to_vec())
    })
    .await;
    let cx = ToolCx::for_test("session", "call").unwrap();
    let (cancel, url) = (cx.cancel.clone(), server.url("docs.test", "/"));
    let running = tokio::spawn(async move {
        call(&[web_fetch(config())], &cx, "web_fetch", &json!({ "url": url })).await.unwrap_err().to_string()
    });
    while server.requests() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    cancel.cancel();
    let told = tokio::time::timeout(Duration::from_secs(5), running).await.unwrap().unwrap();
    assert!(told.starts_with("The call was cancelled"), "{told}");
    left(&server, 1).await;
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

#[tokio::test]
async fn rules_hold_for_the_host_that_is_fetched_from() {
    let tool = web_fetch(config());
    let decide = async |rule: PermissionRule, url: &str| {
        let (call, input) = (CallId::new("c").unwrap(), RawJson::of(&json!({ "url": url })).unwrap());
        let permissions = Permissions { rules: vec![rule], ..Permissions::default() };
        match permissions.check(Proposal::new(&*tool, &call, &input)).await {
            Verdict::Allow(_) => "allow",
            Verdict::Ask(_) => "ask",
            Verdict::Deny(_) => "deny",
        }
    };
    let check = async |url: &str, is_docs: bool| {
        let domain = || "web_fetch(domain:docs.rs)".parse().unwrap();
        let expect = if is_docs { ["allow", "deny"] } else { ["ask", "ask"] };
        let got = [
            decide(PermissionRule::allow(domain()), url).await,
            decide(PermissionRule::deny(domain()), url).await,
        ];
        assert_eq!(got, expect, "{url}");
    };
    check("https://docs.rs/serde", true).await;
    check("http://docs.rs:8080/", true).await;
    check("HTTPS://DOCS.RS/", true).await;
    check("https://docs.rs./", true).await;
    check("https://static.docs.rs/", true).await;
    check("https:docs.rs", true).await;
    check("https:\\\\docs.rs\\a", true).await;
    check("  https://do\ncs.rs/ ", true).await;
    check("https://%64ocs.rs/", true).await;
    check("https://notdocs.rs/", false).await;
    check("https://docs.rs.evil.example/", false).await;
    check("https://evil.example/docs.rs", false).await;
    check("https://evil.example?docs.rs", false).await;
    check("https://evil.example#@docs.rs/", false).await;
    check("https://evil.example\\@docs.rs/", false).await;
    // These are never fetched, so that no rule needs to speak of them.
    check("https://docs.rs@evil.example/", false).await;
    check("https://user@docs.rs/", false).await;
    check("docs.rs", false).await;
    let prefix = || PermissionRule::allow("web_fetch(https://docs.rs/*)".parse().unwrap());
    assert_eq!(decide(prefix(), "https://docs.rs/serde").await, "allow");
    assert_eq!(decide(prefix(), "https://docs.rs:443/a/../serde").await, "allow");
    assert_eq!(decide(prefix(), "http://docs.rs/serde").await, "ask");
    assert_eq!(decide(prefix(), "https://docs.rs/@evil.example").await, "allow");
    assert_eq!(decide(PermissionRule::allow("bash".parse().unwrap()), "https://docs.rs/").await, "ask");
}

#[test]
fn what_the_model_is_told() {
    let tool = web_fetch(config());
    let traits = tool.traits();
    assert_eq!((traits.access, traits.permission), (agent_tools::Access::Network, None));
    insta::assert_snapshot!(tool.card().input_schema(), @r#"{"properties":{"format":{"description":"How an HTML page is shown: `markdown` (default), `text` for its words alone, `html` as it came.","enum":["markdown","text","html",null],"type":["string","null"]},"max_chars":{"description":"How many characters to show. Default 40000, most 100000.","format":"uint","minimum":0,"type":["integer","null"]},"url":{"description":"The whole address, with http or https.","type":"string"}},"required":["url"],"type":"object"}"#);
}
