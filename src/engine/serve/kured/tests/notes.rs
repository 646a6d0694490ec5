//! What is written because of a question.

use super::*;

/// Without a record; the annotation that kured sets before it asks is there or not.
fn no_record(scene: &Scene, annotated: bool) {
    scene.change(|world| {
        world.records.clear();
        world.node["spec"] = json!({});
        world.node["metadata"]["annotations"] = json!({});
        if annotated {
            let since = "2026-03-01T01:00:00Z";
            world.node["metadata"]["annotations"] = json!({"weave.works/kured-reboot-in-progress": since});
        }
    });
}

const METRICS: &str = "http://10.42.1.7:8080/metrics";

#[tokio::test(start_paused = true)]
async fn a_forged_question_makes_no_record() {
    let metric = |value: &str| format!("kured_reboot_required{{node=\"worker2\"}} {value}\n");
    let rows: [(&str, Option<IpAddr>, bool, Option<String>, bool); 7] = [
        ("kured's address", KURED, false, None, true),
        ("the annotation", OTHER, true, None, true),
        ("the metric", OTHER, false, Some(metric("1")), true),
        ("nothing", OTHER, false, None, false),
        ("the metric says no", OTHER, false, Some(metric("0")), false),
        ("no address", None, false, Some(String::new()), false),
        ("a mapped address", "::ffff:10.42.1.7".parse().ok(), false, None, true),
    ];
    for (row, from, annotated, metrics, wished) in rows {
        let scene = Scene::simulated();
        no_record(&scene, annotated);
        let page = metrics.map(|body| (METRICS.to_owned(), Ok((200, body))));
        scene.pages.answers.lock().expect("lock").extend(page);
        assert_eq!(scene.ask(from).await, "maint: worker2 was heard; nothing is planned for it yet", "{row}");
        let wanted: Vec<String> = wished.then(|| "wish worker2-0f3c9a1b-1".to_owned()).into_iter().collect();
        assert_eq!(scene.fake.writes(), wanted, "{row}");
    }
    for (row, change) in [
        ("no pod", (|world| world.pods.clear()) as fn(&mut World)),
        ("not Ready", |world| world.pods[0]["status"]["conditions"] = json!([])),
    ] {
        let scene = Scene::simulated();
        no_record(&scene, true);
        scene.change(change);
        scene.ask(KURED).await;
        assert_eq!((scene.fake.writes(), scene.pages.asked.lock().expect("lock").len()), (vec![], 0), "{row}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_is_noted_in_the_record_when_it_is_news() {
    let scene = Scene::simulated();
    scene.change(|world| world.records[0]["status"]["intent"] = Value::Null);
    let no = "maint: worker2 is drained, waits for the first question after the cordon";
    scene.ask(KURED).await;
    assert_eq!(scene.fake.writes(), [format!("asked worker2-1 1 Kured {no}")]);
    // What was written is in the record; nothing is news until the epoch is raised.
    let asked = json!({"at": scene.env.clock.now(), "answer": no, "epoch": 1, "source": "kured"}).to_string();
    scene.change(|world| world.records[0]["metadata"]["annotations"] = json!({"maint.dev/asked": asked}));
    scene.later().await;
    scene.ask(OTHER).await;
    assert_eq!(scene.fake.writes().len(), 1);
    scene.change(|world| world.records[0]["status"]["kured"]["askEpoch"] = json!(2));
    scene.later().await;
    scene.ask(KURED).await;
    assert_eq!(scene.fake.writes()[1..], [format!("asked worker2-1 2 Kured {no}")]);
}

#[tokio::test(start_paused = true)]
async fn a_note_that_failed_is_tried_at_the_next_question() {
    let scene = Scene::simulated();
    scene.change(|world| world.conflict = true);
    assert_eq!(scene.ask(KURED).await, "go");
    scene.change(|world| world.conflict = false);
    scene.later().await;
    assert_eq!(scene.ask(KURED).await, "go");
    assert_eq!(scene.fake.writes(), ["asked worker2-1 1 Kured go"]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_waits_for_no_note() {
    let scene = Scene::simulated();
    no_record(&scene, false);
    let begun = scene.env.clock.instant();
    // Nobody answers at the metrics' address.
    scene.questions.answer("worker2", OTHER).await;
    assert_eq!(scene.env.clock.instant().duration_since(begun), Duration::ZERO);
    assert_eq!(scene.env.tasks.count(), 1);
    scene.env.clock.sleep(METRICS_LIMIT + Duration::from_millis(1)).await;
    assert_eq!((scene.env.tasks.count(), scene.fake.writes()), (0, vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_record_that_is_over_hears_it_while_an_old_go_may_be_acted_on() {
    let scene = Scene::simulated();
    scene.change(|world| {
        let status = &mut world.records[0]["status"];
        status["phase"] = json!("Failed");
        status["intent"] = Value::Null;
        status["kured"]["askEpoch"] = json!(2);
        status["kured"]["closing"] = json!({"epoch": 2, "pod": "", "used": false});
    });
    scene.ask(KURED).await;
    let heard = scene.fake.writes().iter().filter(|write| write.starts_with("asked worker2-1 2 Kured ")).count();
    assert_eq!(heard, 1, "{:?}", scene.fake.writes());
}
