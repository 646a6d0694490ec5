//! Pods that are put on the node again after their eviction.

use super::*;

/// A StatefulSet that tolerates the cordon puts its pod on the node again and again: each of them goes by an eviction of
/// its own, later and later.
#[test]
fn a_pod_that_comes_back_goes_in_its_own_name_and_later_each_time() {
    let tolerates = json!({"tolerations": [{"operator": "Exists"}]});
    let one = |uid: &str| pod_document("a", json!({"metadata": {"uid": uid}, "spec": tolerates}));
    let mut answers = Answers::default();
    let (mut at, mut uid) = (0, "u0".to_owned());
    for (turn, pause) in [0, 5, 10, 20, 40, 60, 60].into_iter().enumerate() {
        let cluster = cluster(vec![one(&uid), web("b")], vec![]);
        if pause > 0 {
            let found = decide(&cluster, &answers, at + pause - 1);
            let count = if turn == 1 { "once".to_owned() } else { format!("{turn} times") };
            let why = "it tolerates the cordon: take that toleration away, or scale it down";
            let wanted = format!("[b] a is on the node again after its eviction: evicted {count}, and {why}");
            assert_eq!(told(&found), wanted, "turn {turn}");
            assert_eq!(found.wake_at, Some(later(at + pause)), "turn {turn}");
        }
        at += pause;
        let found = decide(&cluster, &answers, at);
        let asked = found.send.iter().find(|one| one.name == "a").expect("it is asked");
        assert_eq!(asked.uid, uid, "turn {turn}");
        answers.note(answered(&found, "a", Answer::Accepted, at));
        uid = format!("u{}", turn + 1);
    }
    let elsewhere = pod_document("a", json!({"metadata": {"namespace": "other"}}));
    assert_eq!(told(&decide(&cluster(vec![elsewhere], vec![]), &answers, at)), "[a] ", "another of that name");
}
