//! What is sent, how much is taken, and for how long.

use super::*;

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
