//! The headers of a request: the vendor's, the key, what the body needs, and the user's.

use std::sync::Arc;

use reqwest::header::{HeaderName, HeaderValue};

use super::{ConfigError, HttpConfig};
use crate::vendor::Auth;

/// Headers that are known before there is a body, checked once.
#[derive(Clone)]
pub(super) struct Headers {
    /// Ours, in lower case.
    fixed: Vec<(String, String)>,
    users: Vec<(String, String)>,
    /// All of them, for a body that needs none of its own.
    plain: Arc<[(String, String)]>,
}

impl Headers {
    pub(super) fn new(config: &HttpConfig) -> Result<Self, ConfigError> {
        let mut fixed = vec![("content-type".to_owned(), "application/json".to_owned())];
        for (name, value) in &config.vendor.headers {
            set(&mut fixed, &checked(name, value)?, value);
        }
        let key = config.api_key.as_str();
        if !key.is_empty() {
            let (name, value) = match &config.vendor.auth {
                Auth::None => ("", String::new()),
                Auth::Bearer => ("authorization", format!("Bearer {key}")),
                Auth::Header(name) => (name.as_str(), key.to_owned()),
            };
            if !name.is_empty() {
                HeaderValue::from_str(&value).map_err(|_| ConfigError::ApiKey)?;
                set(&mut fixed, &checked(name, "")?, &value);
            }
        }
        let users = config.headers.iter();
        let users = users.map(|(name, value)| Ok((checked(name, value)?, value.clone())));
        let users = users.collect::<Result<Vec<_>, ConfigError>>()?;
        let plain = all(&fixed, &[], &users);
        Ok(Self { fixed, users, plain })
    }

    /// All headers of one request. The user's win; lists of beta features are joined.
    pub(super) fn with(&self, needed: &[(String, String)]) -> Arc<[(String, String)]> {
        if needed.is_empty() { Arc::clone(&self.plain) } else { all(&self.fixed, needed, &self.users) }
    }
}

fn all(
    fixed: &[(String, String)],
    needed: &[(String, String)],
    users: &[(String, String)],
) -> Arc<[(String, String)]> {
    let mut all = fixed.to_vec();
    for (name, value) in needed {
        add(&mut all, &name.to_ascii_lowercase(), value);
    }
    for (name, value) in users {
        add(&mut all, name, value);
    }
    all.into()
}

/// A name in lower case that can be sent with this value.
fn checked(name: &str, value: &str) -> Result<String, ConfigError> {
    let bad = || ConfigError::Header { name: name.to_owned() };
    HeaderValue::from_str(value).map_err(|_| bad())?;
    HeaderName::try_from(name).map_err(|_| bad()).map(|name| name.as_str().to_owned())
}

fn add(all: &mut Vec<(String, String)>, name: &str, value: &str) {
    if name != BETA {
        return set(all, name, value);
    }
    let given = all.iter().find(|(known, _)| known == name).map_or("", |(_, given)| given);
    let mut features: Vec<&str> = Vec::new();
    for feature in given.split(',').chain(value.split(',')).map(str::trim) {
        if !feature.is_empty() && !features.contains(&feature) {
            features.push(feature);
        }
    }
    let joined = features.join(",");
    set(all, name, &joined);
}

fn set(all: &mut Vec<(String, String)>, name: &str, value: &str) {
    match all.iter_mut().find(|(known, _)| known == name) {
        Some((_, given)) => value.clone_into(given),
        None => all.push((name.to_owned(), value.to_owned())),
    }
}

/// Values may be secrets: only names are shown.
impl std::fmt::Debug for Headers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.fixed.iter().chain(&self.users).map(|(name, _)| name)).finish()
    }
}

/// The one header that both sides add to.
const BETA: &str = "anthropic-beta";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::ApiKey;
    use crate::vendor::Vendor;

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn headers(auth: Auth, users: &[(&str, &str)]) -> Result<Headers, ConfigError> {
        let vendor = Vendor { auth, ..Vendor::default() };
        let api_key = ApiKey::new("secret-7");
        Headers::new(&HttpConfig { vendor, api_key, headers: pairs(users), ..HttpConfig::default() })
    }

    fn shown(headers: &Headers, needed: &[(&str, &str)]) -> String {
        let all = headers.with(&pairs(needed));
        all.iter().map(|(name, value)| format!("{name}: {value}\n")).collect()
    }

    #[test]
    fn the_key_goes_where_the_vendor_wants_it() {
        let check = |auth: Auth, expect: &str| {
            let all = shown(&headers(auth, &[]).unwrap(), &[]);
            let rest = all.strip_prefix("content-type: application/json\nanthropic-version: 2023-06-01\n");
            assert_eq!(rest.unwrap(), expect);
        };
        check(Auth::Header("X-Api-Key".into()), "x-api-key: secret-7\n");
        check(Auth::Bearer, "authorization: Bearer secret-7\n");
        check(Auth::None, "");
        let none = HttpConfig {
            vendor: Vendor { auth: Auth::Bearer, ..Vendor::default() },
            ..HttpConfig::default()
        };
        assert!(
            !shown(&Headers::new(&none).unwrap(), &[]).contains("authorization"),
            "an empty key is not sent"
        );
        assert!(matches!(headers(Auth::Header("a b".into()), &[]), Err(ConfigError::Header { .. })));
    }

    #[test]
    fn headers_of_the_user_win_and_features_are_joined() {
        let users = [("Anthropic-Version", "2030-01-01"), ("X-Mine", "1"), ("Anthropic-Beta", "b, c")];
        let mine = headers(Auth::None, &users).unwrap();
        let needed = [("anthropic-beta", "a,b"), ("x-mine", "0"), ("X-Theirs", "2")];
        insta::assert_snapshot!(shown(&mine, &needed), @"
        content-type: application/json
        anthropic-version: 2030-01-01
        anthropic-beta: a,b,c
        x-mine: 1
        x-theirs: 2
        ");
        insta::assert_snapshot!(shown(&mine, &[]), @"
        content-type: application/json
        anthropic-version: 2030-01-01
        x-mine: 1
        anthropic-beta: b,c
        ");
        for bad in [("a b", "x"), ("x", "a\nb")] {
            let error = headers(Auth::None, &[bad]).unwrap_err();
            assert!(matches!(error, ConfigError::Header { .. }));
        }
    }
}
