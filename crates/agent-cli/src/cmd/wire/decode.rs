//! `agent wire decode`: one raw response body in, what it says out.

use std::io::{Write, stdout};
use std::process::ExitCode;

use agent_providers::{ResponseHead, decode_response};
use serde::Deserialize;

use super::{dialect, input};
use crate::args::DecodeArgs;
use crate::env;
use crate::error::CliError;

/// Network reads in order. How the body ended makes no difference: an answer without its last event is interrupted.
#[derive(Deserialize)]
struct Chunks {
    chunks_hex: Vec<String>,
}

pub(crate) fn decode(args: &DecodeArgs) -> Result<ExitCode, CliError> {
    let dialect = dialect(&args.format, args.provider.as_deref())?;
    let headers = args.headers.iter().map(|given| header(given)).collect::<Result<Vec<_>, _>>()?;
    let input = input()?;
    let chunks = if args.chunks { unhex_all(&input)? } else { vec![input] };
    let head = ResponseHead { status: args.status, headers: &headers, now: env::now() };
    let decoded = decode_response(&dialect, &chunks, &head);
    writeln!(stdout(), "{}", serde_json::to_string(&decoded)?)?;
    Ok(ExitCode::SUCCESS)
}

fn header(given: &str) -> Result<(String, String), CliError> {
    let (name, value) = given.split_once(':').ok_or_else(|| CliError::Header { given: given.to_owned() })?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn unhex_all(input: &[u8]) -> Result<Vec<Vec<u8>>, CliError> {
    let chunks: Chunks = serde_json::from_slice(input).map_err(|cause| CliError::Chunks { cause })?;
    let bytes = chunks.chunks_hex.iter().enumerate();
    bytes.map(|(position, hex)| unhex(hex).ok_or(CliError::Hex { position })).collect()
}

fn unhex(hex: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        hex.chars().map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal() {
        assert_eq!(unhex("00fFa0"), Some(vec![0, 255, 160]));
        assert_eq!(unhex(""), Some(vec![]));
        assert_eq!(unhex("0"), None);
        assert_eq!(unhex("0g"), None);
    }
}
