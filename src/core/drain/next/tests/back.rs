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
            let why = "it tolerates the cordon: take that toleration away, scale it down, or leave it here by a rule";
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

/// A Deployment that tolerates the cordon does the same under new names: those it had here go without a pause, and those
/// that it puts in their place wait, longer each time.
#[test]
fn a_deployment_that_comes_back_under_new_names_is_paced_as_well() {
    let one = |name: &str, made: i64| {
        pod_document(
            name,
            json!({"metadata": {"creationTimestamp": later(made).to_string()}, "spec": {"tolerations": [{"operator": "Exists"}]}}),
        )
    };
    let mut answers = Answers::default();
    let first = decide(&cluster(vec![one("web-a", -60), one("web-b", -30)], vec![]), &answers, 0);
    assert_eq!(told(&first), "[web-a web-b] ");
    answers.note(answered(&first, "web-a", Answer::Accepted, 0));
    let second = decide(&cluster(vec![one("web-b", -30)], vec![]), &answers, 1);
    assert_eq!(told(&second), "[web-b] ", "it was here when the first one went");
    answers.note(answered(&second, "web-b", Answer::Accepted, 1));
    let why = "it tolerates the cordon: take that toleration away, scale it down, or leave it here by a rule";
    let mut at = 1;
    for (turn, pause) in [10, 20, 40, 60, 60].into_iter().enumerate() {
        let name = format!("web-{turn}");
        let again = cluster(vec![one(&name, at + 1)], vec![]);
        let early = decide(&again, &answers, at + pause - 1);
        let wanted =
            format!("[] {name} is on the node again after its eviction: evicted {} times, and {why}", turn + 2);
        assert_eq!(told(&early), wanted, "turn {turn}");
        at += pause;
        let found = decide(&again, &answers, at);
        assert_eq!(told(&found), format!("[{name}] "), "turn {turn}");
        answers.note(answered(&found, &name, Answer::Accepted, at));
    }
    // A rule leaves it.
    let rule = settings("[[drain.rules]]\nname = \"stays\"\npods = \"app=web\"\nthen = \"skip\"\n");
    let left = decide_with(&cluster(vec![one("web-x", at + 1)], vec![]), &rule, &answers, at + 1);
    assert_eq!((told(&left).as_str(), left.waiting.len()), ("[] ", 0));
    // A pod of another controller is none of its successors.
    let mut other = one("api-a", at + 1);
    other["metadata"]["ownerReferences"][0]["uid"] = json!("uid-api");
    assert_eq!(told(&decide(&cluster(vec![other], vec![]), &answers, at + 1)), "[api-a] ");
}
