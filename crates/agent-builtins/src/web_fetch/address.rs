//! Which addresses are public, and which others a program lets its agents reach.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use url::Host;

/// Addresses that are not public and may be fetched from all the same. Default: none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a choice to write down")]
pub enum PrivateAddresses {
    /// None of them.
    #[default]
    Refused,
    /// These hosts, whatever their addresses, and these networks, whatever names lead there.
    Only(Vec<AllowedHost>),
    /// All of them: an agent then reaches whatever this machine reaches.
    Allowed,
}

/// A host (`build.internal`, `127.0.0.1`, `[::1]`) or a network (`10.1.0.0/16`) that may be reached though it is not
/// public. A name stands for itself alone and not for names below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedHost(Allowed);

/// A text that names no host and no network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{given:?} names no host; write a host such as localhost, 127.0.0.1 or [::1], or a network such as 10.1.0.0/16, without a scheme and a port"
)]
#[non_exhaustive]
pub struct AllowedHostError {
    /// What was given.
    pub given: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Allowed {
    Name(String),
    Net(Net),
}

/// The addresses that share their first bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Net {
    base: IpAddr,
    bits: u32,
}

impl PrivateAddresses {
    /// Whether every address of this host may be reached.
    pub(super) fn allows_host(&self, host: &str) -> bool {
        let named = |allowed: &AllowedHost| matches!(&allowed.0, Allowed::Name(name) if name == plain(host));
        match self {
            Self::Refused => false,
            Self::Only(hosts) => hosts.iter().any(named),
            Self::Allowed => true,
        }
    }

    /// Why an address is refused, if it is: the name of the range it lies in.
    pub(super) fn refusal(&self, address: IpAddr) -> Option<&'static str> {
        let within = |allowed: &AllowedHost| matches!(&allowed.0, Allowed::Net(net) if net.holds(address));
        match self {
            Self::Allowed => None,
            Self::Only(hosts) if hosts.iter().any(within) => None,
            Self::Refused | Self::Only(_) => special(address),
        }
    }
}

impl FromStr for AllowedHost {
    type Err = AllowedHostError;

    fn from_str(text: &str) -> Result<Self, AllowedHostError> {
        let text = text.trim();
        let bad = || AllowedHostError { given: text.to_owned() };
        let read = match text.split_once('/') {
            Some((base, bits)) => Net::parse(base, bits).map(Allowed::Net),
            None => Self::host(text),
        };
        read.map(Self).ok_or_else(bad)
    }
}

impl AllowedHost {
    fn host(text: &str) -> Option<Allowed> {
        let bare = text.parse::<Ipv6Addr>().map(Host::Ipv6);
        Some(match bare.ok().or_else(|| Host::parse(text).ok())? {
            Host::Domain(name) => Allowed::Name(plain(&name).to_owned()),
            Host::Ipv4(address) => Allowed::Net(Net { base: address.into(), bits: 32 }),
            Host::Ipv6(address) => Allowed::Net(Net { base: address.into(), bits: 128 }),
        })
    }
}

impl fmt::Display for AllowedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Allowed::Name(name) => f.write_str(name),
            Allowed::Net(Net { base, bits }) => write!(f, "{base}/{bits}"),
        }
    }
}

impl Net {
    fn parse(base: &str, bits: &str) -> Option<Self> {
        let base: IpAddr = base.trim_matches(['[', ']']).parse().ok()?;
        let bits = bits.parse().ok().filter(|bits| *bits <= width(base))?;
        Some(Self { base, bits })
    }

    fn holds(&self, address: IpAddr) -> bool {
        let differ = match (self.base, address) {
            (IpAddr::V4(base), IpAddr::V4(address)) => (base.to_bits() ^ address.to_bits()).leading_zeros(),
            (IpAddr::V6(base), IpAddr::V6(address)) => (base.to_bits() ^ address.to_bits()).leading_zeros(),
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => return false,
        };
        differ >= self.bits
    }
}

/// The name of a host without the dot that may end it, which leads to the same place.
pub(super) fn plain(host: &str) -> &str {
    host.strip_suffix('.').unwrap_or(host)
}

fn width(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The range that takes an address out of the public ones.
fn special(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => special_v4(address),
        IpAddr::V6(address) => special_v6(address),
    }
}

fn special_v4(address: Ipv4Addr) -> Option<&'static str> {
    let held = |(base, bits, _): &&([u8; 4], u32, _)| {
        Net { base: Ipv4Addr::from(*base).into(), bits: *bits }.holds(address.into())
    };
    SPECIAL_V4.iter().find(held).map(|(_, _, name)| *name)
}

fn special_v6(address: Ipv6Addr) -> Option<&'static str> {
    let held = |(base, bits, _): &&([u16; 4], u32, _)| {
        let [a, b, c, d] = *base;
        Net { base: Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into(), bits: *bits }.holds(address.into())
    };
    // Behind a translator this is how every IPv4 host looks, so that what is inside decides.
    if let [0x64, 0xff9b, 0, 0, 0, 0, high, low] = address.segments() {
        return special_v4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
    }
    match address.to_ipv4_mapped() {
        Some(_) => Some("IPv4-mapped"),
        None if address.is_loopback() => Some("loopback"),
        None if address.is_unspecified() => Some("unspecified"),
        None => SPECIAL_V6.iter().find(held).map(|(_, _, name)| *name).or_else(|| not_global(address)),
    }
}

/// Nothing outside 2000::/3 was ever given out for the public network.
fn not_global(address: Ipv6Addr) -> Option<&'static str> {
    (address.segments()[0] & 0xe000 != 0x2000).then_some("reserved")
}

const SPECIAL_V4: [([u8; 4], u32, &str); 16] = [
    ([0, 0, 0, 0], 8, "unspecified"),
    ([10, 0, 0, 0], 8, "private"),
    ([100, 64, 0, 0], 10, "carrier-grade NAT"),
    ([127, 0, 0, 0], 8, "loopback"),
    ([169, 254, 0, 0], 16, "link-local"),
    ([172, 16, 0, 0], 12, "private"),
    ([192, 0, 0, 0], 24, "reserved"),
    ([192, 0, 2, 0], 24, "documentation"),
    ([192, 88, 99, 0], 24, "6to4 relay"),
    ([192, 168, 0, 0], 16, "private"),
    ([198, 18, 0, 0], 15, "benchmarking"),
    ([198, 51, 100, 0], 24, "documentation"),
    ([203, 0, 113, 0], 24, "documentation"),
    ([224, 0, 0, 0], 4, "multicast"),
    ([255, 255, 255, 255], 32, "broadcast"),
    ([240, 0, 0, 0], 4, "reserved"),
];

const SPECIAL_V6: [([u16; 4], u32, &str); 8] = [
    ([0xfc00, 0, 0, 0], 7, "unique-local"),
    ([0xfe80, 0, 0, 0], 10, "link-local"),
    ([0xff00, 0, 0, 0], 8, "multicast"),
    ([0x2001, 0, 0, 0], 32, "Teredo"),
    ([0x2001, 0, 0, 0], 23, "reserved"),
    ([0x2001, 0xdb8, 0, 0], 32, "documentation"),
    ([0x2002, 0, 0, 0], 16, "6to4"),
    ([0x3fff, 0, 0, 0], 20, "documentation"),
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn public_addresses_are_none_of_them() {
        for public in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700::1111",
            "2001:4860:4860::8888",
            "2a00::1",
            "64:ff9b::8.8.8.8",
        ] {
            assert_eq!(PrivateAddresses::Refused.refusal(public.parse().unwrap()), None, "{public}");
        }
    }

    #[test]
    fn what_is_allowed() {
        let check = |allowed: &str, host: &str, address: &str, expect: bool| {
            let only = PrivateAddresses::Only(vec![allowed.parse().unwrap()]);
            let reached = only.allows_host(host) || only.refusal(address.parse().unwrap()).is_none();
            assert_eq!(reached, expect, "{allowed}: {host} at {address}");
        };
        check("localhost", "localhost", "127.0.0.1", true);
        check("LocalHost.", "localhost.", "::1", true);
        check("localhost", "a.localhost", "127.0.0.1", false);
        check("127.0.0.1", "localhost", "127.0.0.1", true);
        check("127.0.0.1", "localhost", "127.0.0.2", false);
        check("0x7f.1", "localhost", "127.0.0.1", true);
        check("::1", "x", "::1", true);
        check("[::1]", "x", "::1", true);
        check("10.1.0.0/16", "x", "10.1.255.1", true);
        check("10.1.0.0/16", "x", "10.2.0.0", false);
        check("0.0.0.0/0", "x", "10.2.0.0", true);
        check("0.0.0.0/0", "x", "fd00::1", false);
        check("fd00::/8", "x", "fd12::1", true);
        assert!(PrivateAddresses::Allowed.refusal("127.0.0.1".parse().unwrap()).is_none());
        for bad in ["", "http://a", "a:80", "10.0.0.0/33", "a/8", "10.0.0.0/", "[::1", "a b"] {
            assert!(bad.parse::<AllowedHost>().is_err(), "{bad}");
        }
    }

    /// A range and how many of its first bits are fixed.
    fn ranges() -> impl Strategy<Value = Net> {
        let texts = [
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",
            "127.0.0.0/8",
            "169.254.0.0/16",
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.168.0.0/16",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/3",
            "::/96",
            "::ffff:0:0/96",
            "64:ff9b::10.0.0.0/104",
            "64:ff9b::127.0.0.0/104",
            "64:ff9b::169.254.0.0/112",
            "64:ff9b:1::/48",
            "100::/64",
            "2001::/23",
            "2001:db8::/32",
            "2002::/16",
            "3fff::/20",
            "4000::/2",
            "8000::/1",
            "fc00::/7",
            "fe80::/10",
            "fec0::/10",
            "ff00::/8",
        ];
        let net = |text: &str| text.split_once('/').and_then(|(base, bits)| Net::parse(base, bits)).unwrap();
        prop::sample::select(texts.map(net).to_vec())
    }

    proptest! {
        #[test]
        fn every_address_of_a_special_range_is_refused(net in ranges(), any in any::<u128>()) {
            let address: IpAddr = match net.base {
                IpAddr::V4(base) => {
                    let free = u32::MAX.checked_shr(net.bits).unwrap_or(0);
                    Ipv4Addr::from_bits(base.to_bits() | (any as u32 & free)).into()
                }
                IpAddr::V6(base) => {
                    let free = u128::MAX.checked_shr(net.bits).unwrap_or(0);
                    Ipv6Addr::from_bits(base.to_bits() | (any & free)).into()
                }
            };
            prop_assert!(PrivateAddresses::Refused.refusal(address).is_some(), "{address}");
            let elsewhere = PrivateAddresses::Only(vec!["build.internal".parse().unwrap()]);
            prop_assert!(elsewhere.refusal(address).is_some(), "{address}");
        }
    }
}
