//! The preview for people: the verdict first, then why.

use std::fmt;

use super::{DrainPlan, PlannedPod, Verdict};

/// `1 pod`, `2 pods`.
pub(crate) fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Seconds as a person says them.
pub(crate) fn length(seconds: i64) -> String {
    match seconds {
        ..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", (seconds + 30) / 60),
        _ => format!("{} h", (seconds + 1800) / 3600),
    }
}

impl DrainPlan {
    /// What comes of it, in one line.
    #[must_use]
    pub fn verdict_line(&self) -> String {
        let (planned, waves) = (count(self.planned(), "pod"), count(self.waves.len(), "wave"));
        if !self.never.is_empty() {
            let verb = if self.never.len() == 1 { "goes" } else { "go" };
            return format!("{} cannot be drained: {} never {verb}", self.node, count(self.never.len(), "pod"));
        }
        if let Some(why) = self.unknown.first() {
            return format!("whether {} can be drained is not known: {why}", self.node);
        }
        if self.planned() == 0 {
            return format!("{} has nothing to drain", self.node);
        }
        let held = self.budgets_that_are(Verdict::Now).count();
        if held > 0 {
            let verb = if held == 1 { "allows" } else { "allow" };
            return format!("{} has {planned} to evict, and {} {verb} none now", self.node, count(held, "budget"));
        }
        let estimate = self.estimate_seconds.unwrap_or_default();
        let late = if estimate > self.deadline_seconds {
            format!(", more than the {} that it may take", length(self.deadline_seconds))
        } else {
            String::new()
        };
        format!("{} has {planned} to evict in {waves}, about {}{late}", self.node, length(estimate))
    }
}

impl fmt::Display for DrainPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.verdict_line())?;
        for pod in &self.never {
            writeln!(f, "never goes: {}/{} {}\n  {}", pod.namespace, pod.name, pod.why, pod.remedy)?;
        }
        for why in &self.unknown {
            writeln!(f, "not known: {why}")?;
        }
        for look in self.budgets.iter().filter(|look| look.verdict != Verdict::Free) {
            writeln!(f, "budget {}/{} ({}): {}", look.namespace, look.name, look.verdict, look.why)?;
            if !look.advice.is_empty() {
                writeln!(f, "  {}", look.advice)?;
            }
        }
        for (index, wave) in self.waves.iter().enumerate() {
            let pods = count(wave.pods.len(), "pod");
            writeln!(f, "wave {} ({}): {pods}, about {}", index + 1, wave.wave, length(wave.estimate_seconds))?;
            for pod in &wave.pods {
                writeln!(f, "  {}", line(pod))?;
            }
        }
        if !self.stays.is_empty() {
            writeln!(f, "stays: {}", count(self.stays.len(), "pod"))?;
            for pod in &self.stays {
                writeln!(f, "  {}/{} ({})", pod.namespace, pod.name, pod.why)?;
            }
        }
        for warning in &self.warnings {
            writeln!(f, "warning: {} {}", warning.object, warning.message)?;
            if !warning.remedy.is_empty() {
                writeln!(f, "  {}", warning.remedy)?;
            }
        }
        Ok(())
    }
}

fn line(pod: &PlannedPod) -> String {
    let name = format!("{}/{}", pod.namespace, pod.name);
    match (&pod.held, &pod.budget) {
        (Some(held), _) => format!("{name} {held}"),
        (None, Some(budget)) => format!("{name} ({} s, budget {budget})", pod.grace_seconds),
        (None, None) => format!("{name} ({} s)", pod.grace_seconds),
    }
}
