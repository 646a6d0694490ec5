//! Every story ends as it must, tells what it must, and is the same at every speed.

use super::*;

/// Hears everything.
#[derive(Default)]
struct Ear(Vec<Line>);

impl Audience for Ear {
    fn line(&mut self, line: &Line) -> io::Result<()> {
        self.0.push(line.clone());
        Ok(())
    }

    fn live(&mut self, _: Timestamp, _: &str) -> io::Result<()> {
        Ok(())
    }

    async fn over(&mut self, _: &Outcome) -> io::Result<()> {
        Ok(())
    }
}

fn begin() -> Timestamp {
    "2026-11-30T02:00:00Z".parse().expect("a time")
}

fn played(story: &Story, begin: Timestamp, pace: Pace) -> (Outcome, Vec<Line>) {
    runtime().expect("a runtime").block_on(async {
        let mut ear = Ear::default();
        let outcome = Demo::new(story, begin, pace, None).play(&mut ear).await.expect("somebody hears it");
        (outcome, ear.0)
    })
}

fn text(lines: &[Line]) -> String {
    let shown = |line: &Line| format!("{} {:?} {} {}", line.at.strftime("%H:%M:%S"), line.voice, line.about, line.text);
    lines.iter().map(shown).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_story_ends_as_it_must_and_tells_what_it_must() {
    let play = |half: usize| {
        let mut bad = Vec::new();
        for story in STORIES.iter().skip(half).step_by(2) {
            let (outcome, lines) = played(story, begin(), Pace::Unbound);
            let lasted = outcome.at.duration_since(begin());
            println!("{}: {} virtual seconds, {} lines", story.name, lasted.as_secs(), lines.len());
            if !outcome.differences.is_empty() || lasted > story.lasts() {
                let (found, violations) = (&outcome.differences, &outcome.night.violations);
                bad.push(format!(
                    "{} {lasted:?}: {found:#?}\n{violations:#?}\n{}\n{}",
                    story.name,
                    text(&lines),
                    outcome.night.story()
                ));
            }
        }
        bad
    };
    let bad: Vec<String> = std::thread::scope(|scope| {
        let halves = [0, 1].map(|half| scope.spawn(move || play(half)));
        halves.into_iter().flat_map(|half| half.join().expect("no panic")).collect()
    });
    println!("figure demo.stories {} count", STORIES.len());
    assert!(STORIES.len() >= 6);
    assert!(bad.is_empty(), "{}", bad.join("\n\n"));
}

/// Prints one for people: `MAINT_DEMO=night cargo test -p maint-sim one_story -- --nocapture`.
#[test]
fn one_story_is_the_same_at_every_speed() {
    let name = std::env::var("MAINT_DEMO").unwrap_or_else(|_| "rebuild-all-night".to_owned());
    let story = Story::named(&name).expect("a story");
    let (outcome, lines) = played(story, begin(), Pace::Unbound);
    println!("{}", text(&lines));
    let (paced, heard) = played(story, begin(), Pace::Speed(1500.0));
    assert_eq!(text(&heard), text(&lines));
    assert_eq!(paced.night.hash, outcome.night.hash);
}
