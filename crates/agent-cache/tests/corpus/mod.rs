//! Recorded exchanges: what the simulator predicts is what the service counted.

use std::collections::BTreeMap;
use std::time::Duration;

use agent_cache::{Audit, Block, CacheRules, Format, PrefixHash, Request, RuleBook, Simulator, TokenCounter};
use agent_core::{Ttl, Usage};
use agent_testkit::{Exchange, corpus_dir, corpus_files, read_exchanges};

/// Token counts that a recording gives away: how far its marked blocks reach. Everything else counts nothing.
#[derive(Debug, Clone, Default)]
struct Calibrated {
    reach: BTreeMap<PrefixHash, u64>,
    rules: Option<CacheRules>,
}

impl TokenCounter for Calibrated {
    fn block(&self, _: &Block) -> u64 {
        0
    }

    fn hidden(&self, _: &Request, _: &CacheRules) -> u64 {
        0
    }

    fn request(&self, request: &Request) -> Vec<u64> {
        let mut counts = vec![0; request.blocks.len()];
        let mut before = 0;
        let rules = self.rules.clone().unwrap_or_else(CacheRules::unknown);
        for (block, hash) in request.prefix_hashes(&rules) {
            if let Some(reach) = self.reach.get(&hash) {
                counts[block] = reach.saturating_sub(before);
                before = *reach;
            }
        }
        counts
    }
}

/// What the service counted for the input of an exchange.
fn counted(exchange: &Exchange) -> Option<Usage> {
    let body = std::str::from_utf8(&exchange.response.body).ok()?;
    let stream = body.lines().find(|line| line.starts_with("data:") && line.contains("\"message_start\""));
    let body = stream.map_or(body, |line| line.trim_start_matches("data:"));
    let value: serde_json::Value = serde_json::from_str(body.trim()).ok()?;
    let usage = value.pointer("/message/usage").or_else(|| value.get("usage"))?;
    let count = |path: &str| usage.pointer(path).and_then(serde_json::Value::as_u64);
    let created = count("/cache_creation_input_tokens")?;
    let long = count("/cache_creation/ephemeral_1h_input_tokens").unwrap_or(0);
    Some(Usage {
        input: count("/input_tokens")?,
        cache_read: count("/cache_read_input_tokens")?,
        cache_write_5m: created - long,
        cache_write_1h: long,
        ..Usage::default()
    })
}

/// Marked blocks of a request, the automatic one included, in order.
fn marks(request: &Request) -> Vec<(usize, Ttl)> {
    let set = request.blocks.iter().enumerate().filter_map(|(at, block)| Some((at, block.mark?)));
    let mut marks: Vec<_> = set.collect();
    let last = request.blocks.iter().rposition(Block::can_carry_mark);
    if let Some((ttl, at)) = request.automatic.zip(last).filter(|(_, at)| marks.iter().all(|it| it.0 != *at))
    {
        marks.push((at, ttl));
    }
    marks
}

/// A file is one account that starts cold. All counts of a file are learned from its answers: the last marked block
/// reaches as far as was read and written together, the last long-lived one as far as its own write says.
fn calibrate(asked: &[(Request, Usage)], rules: &CacheRules) -> Calibrated {
    let mut table = Calibrated { rules: Some(rules.clone()), ..Calibrated::default() };
    for (request, usage) in asked {
        let hashes: BTreeMap<usize, PrefixHash> = request.prefix_hashes(rules).into_iter().collect();
        let marks = marks(request);
        let reach = usage.cache_read + usage.cache_write();
        // What is too short to be kept is counted as input.
        let reach = if reach == 0 { usage.input } else { reach };
        let mut learn = |at: usize, tokens: u64| {
            if let Some(hash) = hashes.get(&at) {
                table.reach.entry(*hash).or_insert(tokens);
            }
        };
        if let Some((at, _)) = marks.last() {
            learn(*at, reach);
        }
        let long = marks.iter().rfind(|(_, ttl)| *ttl == Ttl::OneHour);
        if let Some((at, _)) = long.filter(|_| usage.cache_write_1h > 0) {
            learn(*at, usage.cache_read + usage.cache_write_1h);
        }
    }
    table
}

/// How one exchange was predicted.
#[derive(Debug, Default)]
struct Tally {
    /// Marked requests, and how many of them were predicted in each of the three counts.
    marked: usize,
    exact: usize,
    /// Of these, the ones that read something.
    reads: usize,
    /// Requests without markers: nothing is read or written.
    unmarked: usize,
    /// Files that begin in a warm cache: their first request cannot be predicted and warms the simulator.
    warm: Vec<String>,
    wrong: Vec<String>,
    too_much: Vec<String>,
}

impl Tally {
    fn file(&mut self, name: &str, asked: &[(Request, Usage)]) {
        let Some((first, _)) = asked.first() else { return };
        let rules = RuleBook::builtin().rules("anthropic", &first.model);
        let table = calibrate(asked, &rules);
        let mut cache = Simulator::new(RuleBook::builtin(), "anthropic").with_counter(table);
        for (at, (request, usage)) in asked.iter().enumerate() {
            let said = cache.ask(request, Duration::from_secs(10 * at as u64));
            let said = said.unwrap_or_else(|refusal| panic!("{name}: {refusal}")).usage;
            let three = |usage: &Usage| (usage.cache_read, usage.cache_write_5m, usage.cache_write_1h);
            let line = format!("{name}#{at}: predicted {:?}, counted {:?}", three(&said), three(usage));
            if marks(request).is_empty() {
                assert_eq!(three(&said), (0, 0, 0), "{line}");
                self.unmarked += 1;
                if three(usage) != (0, 0, 0) {
                    self.wrong.push(line);
                }
                continue;
            }
            if at == 0 && usage.cache_read > 0 {
                self.warm.push(line);
                continue;
            }
            self.marked += 1;
            if said.cache_read > usage.cache_read {
                self.too_much.push(line.clone());
            }
            if three(&said) == three(usage) {
                self.exact += 1;
                self.reads += usize::from(usage.cache_read > 0);
            } else {
                self.wrong.push(line);
            }
        }
    }
}

#[test]
fn recorded_reads_and_writes_are_predicted() {
    let Some(folder) = corpus_dir() else { return };
    let mut tally = Tally::default();
    for path in corpus_files(&folder.join("recorded/exchanges/anthropic"), "jsonl").unwrap() {
        let exchanges = read_exchanges(&path).unwrap();
        let messages = exchanges.iter().filter(|it| it.request.path.ends_with("/messages"));
        let asked = messages.filter_map(|exchange| {
            let usage = counted(exchange)?;
            let body = exchange.request.body.as_ref()?;
            let request = Request::read(body.as_bytes(), Some(Format::Anthropic));
            Some((request.unwrap_or_else(|error| panic!("{}: {error}", path.display())), usage))
        });
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        tally.file(&name, &asked.collect::<Vec<_>>());
    }
    println!(
        "{} of {} marked exchanges exact, {} of them reads; {} without markers; {} begin warm",
        tally.exact,
        tally.marked,
        tally.reads,
        tally.unmarked,
        tally.warm.len()
    );
    tally.warm.iter().for_each(|line| println!("warm: {line}"));
    tally.wrong.iter().for_each(|line| println!("wrong: {line}"));
    assert!(tally.marked > 50 && tally.exact * 100 >= tally.marked * 95, "{tally:?}");
    assert!(tally.too_much.is_empty(), "a read that did not happen was predicted: {:?}", tally.too_much);
}

/// Every recorded body is read, and an audit of its file ends. Which format it is in is found from the body alone.
#[test]
fn recorded_bodies_of_all_vendors_are_read() {
    let Some(folder) = corpus_dir() else { return };
    let mut read = BTreeMap::<String, usize>::new();
    for (vendor, end, format) in [
        ("anthropic", "/messages", Format::Anthropic),
        ("openai", "/chat/completions", Format::OpenaiChat),
        ("openai", "/responses", Format::OpenaiResponses),
        ("mistral", "/chat/completions", Format::OpenaiChat),
        ("deepseek", "/chat/completions", Format::OpenaiChat),
        ("xai", "/responses", Format::OpenaiResponses),
    ] {
        for path in corpus_files(&folder.join("recorded/exchanges").join(vendor), "jsonl").unwrap() {
            let mut audit = Audit::new(Simulator::new(RuleBook::builtin(), vendor), None);
            for exchange in read_exchanges(&path).unwrap() {
                let ours = exchange.request.path.ends_with(end) && exchange.request.method == "POST";
                let Some(body) = exchange.request.body.filter(|_| ours) else { continue };
                let request = Request::read(body.as_bytes(), None);
                let request = request.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                assert_eq!(request.format, format, "{}", path.display());
                assert!(!request.blocks.is_empty(), "{}", path.display());
                audit.step(&request, None, None);
                *read.entry(format!("{vendor} {format:?}")).or_default() += 1;
            }
        }
    }
    println!("bodies read: {read:?}");
    assert_eq!(read.len(), 6, "{read:?}");
}
