//! Addresses in every spelling, names and rules.

use super::*;

#[tokio::test]
async fn every_spelling_of_a_forbidden_address_is_refused() {
    let server = Server::start(|_, _| ok("text/plain", "secret")).await;
    assert!(FORBIDDEN.len() >= 40);
    for host in FORBIDDEN {
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

/// Hosts that lead nowhere public, as an address may spell them.
const FORBIDDEN: [&str; 76] = [
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
