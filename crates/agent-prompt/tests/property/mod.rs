//! What holds of every prompt.

use agent_core::SystemBlock;
use agent_prompt::{
    Assembled, Caps, Fragment, FragmentError, InSystem, Layer, Prompt, Session, Source, Stability, Static,
    Value,
};
use proptest::prelude::*;

/// A fragment or suppression before it is added.
#[derive(Debug, Clone)]
struct Spec {
    layer: Layer,
    key: String,
    rank: i32,
    words: Words,
}

#[derive(Debug, Clone)]
enum Words {
    Static(String),
    Session(String),
    Suppressed,
}

fn specs() -> impl Strategy<Value = Vec<Spec>> {
    let words = prop_oneof![
        "[a-zé\u{1F600} \n]{0,20}x".prop_map(Words::Static),
        "[a-zé\u{1F600} \n]{0,20}x".prop_map(Words::Session),
        Just(Words::Suppressed),
    ];
    let layer = prop::sample::select(Layer::ALL.to_vec());
    let spec = (layer, "[a-d]", -1i32..2, words).prop_map(|(layer, key, rank, words)| {
        // A suppression has no rank of its own.
        let rank = if matches!(words, Words::Suppressed) { 0 } else { rank };
        Spec { layer, key, rank, words }
    });
    prop::collection::vec(spec, 0..16)
}

/// Specs of which no two have one layer, key and rank, so that their order must not matter; and an order.
fn distinct() -> impl Strategy<Value = (Vec<Spec>, Vec<Spec>)> {
    specs().prop_flat_map(|mut specs| {
        specs.sort_by_key(|spec| (spec.layer, spec.key.clone(), spec.rank));
        specs.dedup_by_key(|spec| (spec.layer, spec.key.clone(), spec.rank));
        (Just(specs.clone()), Just(specs).prop_shuffle())
    })
}

fn assemble(specs: &[Spec], caps: &Caps) -> Assembled {
    let mut prompt = Prompt::new(caps.clone());
    for spec in specs {
        add(&mut prompt, spec).unwrap();
    }
    prompt.assemble()
}

fn add(prompt: &mut Prompt, spec: &Spec) -> Result<(), FragmentError> {
    match spec.words.clone() {
        Words::Static(text) => place(
            prompt,
            spec,
            Fragment::<Static>::new(spec.layer, &spec.key, Value::declared(text, "a test"))?,
        ),
        Words::Session(text) => {
            place(prompt, spec, Fragment::<Session>::new(spec.layer, &spec.key, Value::session(text))?)
        }
        Words::Suppressed => drop(prompt.suppress(spec.layer, &spec.key, Source::Code)?),
    }
    Ok(())
}

fn place<S: InSystem>(prompt: &mut Prompt, spec: &Spec, fragment: Fragment<S>) {
    prompt.add(fragment.with_rank(spec.rank));
}

fn text_of(spec: &Spec) -> Option<&str> {
    match &spec.words {
        Words::Static(text) | Words::Session(text) => Some(text),
        Words::Suppressed => None,
    }
}

fn tight() -> impl Strategy<Value = Caps> {
    (0usize..30, 0usize..60).prop_map(|(fragment_bytes, layer_bytes)| Caps {
        fragment_bytes,
        layer_bytes,
        ..Caps::default()
    })
}

proptest! {
    #[test]
    fn the_order_of_adding_does_not_matter((specs, shuffled) in distinct(), caps in tight()) {
        let (one, other) = (assemble(&specs, &caps), assemble(&shuffled, &caps));
        prop_assert_eq!(one.system(), other.system());
        prop_assert_eq!(one.system_hash(), other.system_hash());
        prop_assert_eq!(one.static_blocks(), other.static_blocks());
        prop_assert_eq!(one.diagnostics(), other.diagnostics());
    }

    #[test]
    fn managed_rules_are_whole_and_last(specs in specs(), caps in tight()) {
        let assembled = assemble(&specs, &caps);
        let asked = specs.iter().filter(|spec| spec.layer == Layer::Managed && text_of(spec).is_some()).count();
        let (tail, head): (Vec<_>, Vec<_>) = assembled.blocks().iter().partition(|block| block.layer == Layer::Managed);
        prop_assert_eq!(tail.len(), asked, "none is removed or replaced");
        prop_assert!(assembled.blocks().iter().skip(head.len()).all(|block| block.layer == Layer::Managed), "they are last");
        for spec in specs.iter().filter(|spec| spec.layer == Layer::Managed) {
            let Some(text) = text_of(spec) else { continue };
            prop_assert!(tail.iter().any(|block| block.key == spec.key && block.text.as_str().ends_with(text)));
        }
    }

    #[test]
    fn the_highest_layer_is_heard(specs in specs()) {
        let assembled = assemble(&specs, &Caps::default());
        for key in ["a", "b", "c", "d"] {
            let said: Vec<_> = assembled.blocks().iter().filter(|block| block.key == key).collect();
            let highest = specs.iter().filter(|spec| spec.key == key).map(|spec| spec.layer).max();
            prop_assert!(said.len() <= 1 || highest == Some(Layer::Managed));
            for block in &said {
                prop_assert_eq!(Some(block.layer), highest);
            }
            let losers = said.iter().map(|block| block.losers.len()).sum::<usize>()
                + assembled.absent().iter().filter(|absent| absent.key == key).map(|absent| 1 + absent.losers.len()).sum::<usize>();
            let asked = specs.iter().filter(|spec| spec.key == key).count();
            prop_assert_eq!(said.len() + losers, asked, "everyone is heard or listed");
        }
    }

    #[test]
    fn blocks_are_ordered_by_stability(specs in specs()) {
        let assembled = assemble(&specs, &Caps::default());
        let below: Vec<_> = assembled.blocks().iter().filter(|block| block.layer != Layer::Managed).collect();
        prop_assert!(below.is_sorted_by_key(|block| (block.stability, block.layer)));
        let prefix = &assembled.blocks()[..assembled.static_blocks()];
        prop_assert!(prefix.iter().all(|block| block.stability == Stability::Static));
    }

    #[test]
    fn caps_hold_and_cuts_are_told(specs in specs(), caps in tight()) {
        let assembled = assemble(&specs, &caps);
        let whole = assemble(&specs, &Caps::default());
        for layer in Layer::ALL.into_iter().filter(|layer| *layer != Layer::Managed) {
            let mut kept = 0;
            for (block, full) in assembled.blocks().iter().zip(whole.blocks()).filter(|(block, _)| block.layer == layer) {
                let bytes = block.cut.map_or(full.text.as_str().len(), |cut| cut.kept_bytes);
                prop_assert!(bytes <= caps.fragment_bytes);
                kept += bytes;
                prop_assert_eq!(block.cut.is_some(), block.text != full.text);
                prop_assert_eq!(block.cut.is_some(), block.text.as_str().ends_with(']'), "the note is the last line");
            }
            prop_assert!(kept <= caps.layer_bytes);
        }
        let over = |block: &&agent_prompt::Block| block.cut.is_some();
        prop_assert!(assembled.diagnostics().len() >= assembled.blocks().iter().filter(over).count());
    }

    #[test]
    fn the_hash_follows_the_bytes(one in specs(), other in specs()) {
        let (one, other) = (assemble(&one, &Caps::default()), assemble(&other, &Caps::default()));
        let texts = |assembled: &Assembled| assembled.system().iter().map(|block| SystemBlock::text(block).to_owned()).collect::<Vec<_>>();
        prop_assert_eq!(one.system_hash() == other.system_hash(), texts(&one) == texts(&other));
    }
}
