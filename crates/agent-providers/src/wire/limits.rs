//! Settings that a model does not take, or not as they are: what is sent instead, and how it is told.

use agent_core::Setting;

use super::form::Cx;

impl Cx<'_> {
    /// Whether the model takes a setting; of a refused one it is told that it is left out.
    pub(crate) fn takes(&mut self, what: &str, setting: Setting) -> bool {
        let is_taken = !self.profile.refuses.contains(&setting);
        if !is_taken {
            self.note(what, "this model does not take it; left out");
        }
        is_taken
    }

    /// The output limit to send. What is only assumed of a model is no reason to send less.
    pub(crate) fn output_limit(&mut self, wanted: u32) -> u32 {
        let most = if self.profile.known { self.profile.max_output } else { u32::MAX };
        if wanted > most {
            let why = format!(
                "{} writes at most {most} tokens; {wanted} were asked for, {most} are sent",
                self.profile.model
            );
            self.note("settings.max_output", why);
        }
        wanted.min(most).max(1)
    }

    /// The nearest number that the provider takes; `None` for what is no number.
    pub(crate) fn nearest(&mut self, what: &str, wanted: f32, (least, most): (f32, f32)) -> Option<f32> {
        if !wanted.is_finite() {
            self.note(what, "it is no number; left out");
            return None;
        }
        if !(least..=most).contains(&wanted) {
            self.note(what, format!("this provider takes {least} to {most}; the nearest was sent"));
        }
        Some(wanted.clamp(least, most))
    }
}

#[cfg(test)]
mod tests {
    use agent_core::ModelProfile;

    use super::*;
    use crate::names::ToolNames;

    /// What comes of it with a model that writes 50 tokens and takes no penalties, and what is told.
    #[track_caller]
    fn check<T: PartialEq + std::fmt::Debug>(
        is_known: bool,
        run: fn(&mut Cx<'_>) -> T,
        expect: T,
        told: &str,
    ) {
        let names = ToolNames::default();
        let profile = ModelProfile {
            known: is_known,
            max_output: 50,
            refuses: [Setting::Penalties].into(),
            ..ModelProfile::conservative("p", "m")
        };
        let mut diagnostics = Vec::new();
        let got =
            run(&mut Cx { names: &names, profile: &profile, diagnostics: &mut diagnostics, tools: &[] });
        let notes: Vec<String> =
            diagnostics.into_iter().map(|note| format!("{}: {}", note.what, note.why)).collect();
        assert_eq!((got, notes.join(", ").as_str()), (expect, told));
    }

    #[test]
    fn what_is_changed_is_told() {
        check(true, |cx| cx.output_limit(50), 50, "");
        check(true, |cx| cx.output_limit(0), 1, "");
        check(
            true,
            |cx| cx.output_limit(51),
            50,
            "settings.max_output: m writes at most 50 tokens; 51 were asked for, 50 are sent",
        );
        check(false, |cx| cx.output_limit(51), 51, "");
        check(true, |cx| cx.takes("a", Setting::Seed), true, "");
        check(
            true,
            |cx| cx.takes("a", Setting::Penalties),
            false,
            "a: this model does not take it; left out",
        );
        check(true, |cx| cx.nearest("a", 0.5, (0.0, 1.0)), Some(0.5), "");
        check(
            true,
            |cx| cx.nearest("a", 3.0, (0.0, 1.0)),
            Some(1.0),
            "a: this provider takes 0 to 1; the nearest was sent",
        );
        check(true, |cx| cx.nearest("a", f32::NAN, (0.0, 1.0)), None, "a: it is no number; left out");
    }
}
