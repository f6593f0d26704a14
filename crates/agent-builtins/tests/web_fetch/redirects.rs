//! Redirects: those of one host are followed, others are told.

use super::*;

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
