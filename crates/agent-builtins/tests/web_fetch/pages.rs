//! What the model is shown of a page, and of what is none.

use super::*;

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
async fn what_is_no_text_is_not_shown() {
    let server = Server::start(|path, _| match path {
        "/a.png" => ok("image/png", b"\x89PNG"),
        "/a.pdf" => Answer::Silent(b"HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\n\r\n%PDF".to_vec()),
        _ => ok("text/plain", b"\x7fELF\0\0"),
    })
    .await;
    let shown = async |path: &str| portless(&server, &fetch(&server.url("docs.test", path)).await);
    insta::assert_snapshot!(shown("/a.png").await, @"ERROR: http://docs.test:PORT/a.png is no text: it came as image/png, 4 bytes, so it cannot be shown. Look for the same as a web page, or download it into a file with bash and use a program for its kind.");
    insta::assert_snapshot!(shown("/a.pdf").await, @"ERROR: http://docs.test:PORT/a.pdf is no text: it came as application/pdf, of unknown size, so it cannot be shown. Look for the same as a web page, or download it into a file with bash and use a program for its kind.");
    insta::assert_snapshot!(shown("/program").await, @"ERROR: http://docs.test:PORT/program is no text: it came as text/plain, 6 bytes, so it cannot be shown. Look for the same as a web page, or download it into a file with bash and use a program for its kind.");
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

#[test]
fn what_the_model_is_told() {
    let tool = web_fetch(config());
    let traits = tool.traits();
    assert_eq!((traits.access, traits.permission), (agent_tools::Access::Network, None));
    insta::assert_snapshot!(tool.card().input_schema(), @r#"{"properties":{"format":{"description":"How an HTML page is shown: `markdown` (default), `text` for its words alone, `html` as it came.","enum":["markdown","text","html",null],"type":["string","null"]},"max_chars":{"description":"How many characters to show. Default 40000, most 100000.","format":"uint","minimum":0,"type":["integer","null"]},"url":{"description":"The whole address, with http or https.","type":"string"}},"required":["url"],"type":"object"}"#);
}
