//! How fast a drain can be at best, as the bench of the drain computes it (`tests/bench/drain/limit.rs`).

#[path = "../bench/drain/limit.rs"]
mod limit;

use limit::{Allowed, Pod, Seen, Unseen, lag, limit, median, own_times, replacement_time};

fn drained(lane: &str, ending: f64, gone: f64) -> Pod {
    Pod {
        lane: lane.to_owned(),
        on_target: true,
        created: 0.0,
        ready: Some(0.0),
        ending: Some(ending),
        gone: Some(gone),
    }
}

fn replacement(lane: &str, created: f64, ready: f64) -> Pod {
    Pod { lane: lane.to_owned(), created, ready: Some(ready), ..Pod::default() }
}

fn allowed(lane: &str, at: f64, disruptions: i64) -> Allowed {
    Allowed { lane: lane.to_owned(), at, disruptions }
}

/// Three pods under a budget of one: each needs 2 s to end, its replacement 3 s, the controller half a second.
fn one_by_one(lane: &str) -> Seen {
    let mut seen = Seen { pods: Vec::new(), allowed: vec![allowed(lane, 0.0, 1)] };
    for wave in 0..3 {
        let start = 10.0 + 3.5 * f64::from(wave);
        seen.pods.extend([drained(lane, start, start + 2.0), replacement(lane, start + 0.1, start + 3.0)]);
        seen.allowed.extend([allowed(lane, start, 0), allowed(lane, start + 3.5, 1)]);
    }
    seen
}

fn without(mut seen: Seen, change: fn(&mut Pod)) -> Seen {
    seen.pods.iter_mut().for_each(change);
    seen
}

#[test]
fn the_limit_is_that_of_the_slowest_lane() {
    let free = Seen { pods: vec![drained("free", 1.0, 3.0), drained("free", 1.5, 4.0)], ..Seen::default() };
    let both = Seen {
        pods: [one_by_one("kept").pods, vec![drained("free", 1.0, 41.0)]].concat(),
        allowed: one_by_one("kept").allowed,
    };
    let rows: &[(&str, Seen, &[(&str, Option<usize>)], Result<(f64, f64), Unseen>)] = &[
        ("without a budget the slowest pod's own time", free.clone(), &[("free", None)], Ok((2.5, 2.5))),
        ("a budget for all at once is none", free.clone(), &[("free", Some(2))], Ok((2.5, 2.5))),
        ("three waves of 2 + 3 + 0.5 s", one_by_one("kept"), &[("kept", Some(1))], Ok((16.5, 9.0))),
        ("two waves where two may go at once", one_by_one("kept"), &[("kept", Some(2))], Ok((11.0, 5.5))),
        ("a budget of nothing counts as one", one_by_one("kept"), &[("kept", Some(0))], Ok((16.5, 9.0))),
        ("the slower lane decides", both, &[("kept", Some(1)), ("free", None)], Ok((40.0, 40.0))),
        ("a lane that nobody left", free, &[("other", None)], Err(Unseen::Ending("other".to_owned()))),
        (
            "replacements that never became Ready",
            without(one_by_one("kept"), |pod| pod.ready = None),
            &[("kept", Some(1))],
            Err(Unseen::Replacement("kept".to_owned())),
        ),
        (
            "a budget that was not watched",
            Seen { allowed: Vec::new(), ..one_by_one("kept") },
            &[("kept", Some(1))],
            Err(Unseen::Lag("kept".to_owned())),
        ),
        (
            "pods that are still there",
            without(one_by_one("kept"), |pod| pod.gone = None),
            &[("kept", Some(1))],
            Err(Unseen::Ending("kept".to_owned())),
        ),
    ];
    for (name, seen, lanes, wanted) in rows {
        let lanes = lanes.iter().map(|(lane, at_once)| ((*lane).to_owned(), *at_once)).collect();
        let found = limit(seen, &lanes).map(|limit| (limit.steps, limit.overlapped));
        assert_eq!(&found, wanted, "{name}");
    }
}

#[test]
fn a_replacement_is_paired_with_the_pod_whose_end_made_it() {
    let mut seen = one_by_one("kept");
    // The order in which they are listed says nothing.
    seen.pods.reverse();
    assert_eq!(replacement_time(&seen, "kept"), Some(3.0));
    // The controller's lag of the first wave is not hidden by what the budget allowed before.
    assert_eq!(lag(&seen, "kept"), Some(0.5));
    assert_eq!(own_times(&seen, "kept"), [2.0, 2.0, 2.0]);
}

#[test]
fn the_median_is_the_middle() {
    let rows: &[(&[f64], Option<f64>)] =
        &[(&[], None), (&[4.0], Some(4.0)), (&[9.0, 1.0, 2.0], Some(2.0)), (&[1.0, 2.0, 3.0, 9.0], Some(2.5))];
    for (values, wanted) in rows {
        assert_eq!(median(values.to_vec()), *wanted, "{values:?}");
    }
}
