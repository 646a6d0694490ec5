//! Shrinking: one kind of trouble after another is taken away as long as the same rule is still broken.

use super::{Drawn, Outcome, play};
use crate::night::Shell;

/// How often all kinds are tried: what one kind hid may be needless once another one is gone.
const ROUNDS: usize = 3;

/// A bad night that was shrunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shrunk {
    /// The night with as little trouble as breaks the same rule.
    pub outcome: Outcome,
    /// Nights that were played for it.
    pub nights: u64,
}

/// Shrinks a bad night.
///
/// # Errors
/// As [`play`].
pub fn shrink(shell: Shell, bad: &Outcome) -> std::io::Result<Shrunk> {
    shrink_by(bad, |drawn| play(shell, drawn, true))
}

/// Shrinks with whatever plays nights.
pub(super) fn shrink_by(
    bad: &Outcome,
    mut play: impl FnMut(&Drawn) -> std::io::Result<Outcome>,
) -> std::io::Result<Shrunk> {
    let rule = bad.wrongs.first().map(|wrong| wrong.rule.clone());
    let (mut least, mut nights) = (bad.clone(), 0);
    for _ in 0..ROUNDS {
        let kinds = least.drawn.kinds.clone();
        for kind in &kinds {
            let tried = play(&least.drawn.without(*kind))?;
            nights += 1;
            if tried.wrongs.iter().any(|wrong| Some(&wrong.rule) == rule.as_ref()) {
                least = tried;
            }
        }
        if least.drawn.kinds == kinds {
            break;
        }
    }
    Ok(Shrunk { outcome: least, nights })
}
