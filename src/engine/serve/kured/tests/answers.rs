//! What is answered, and when.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_go_is_given_by_a_fresh_look_and_never_from_memory() {
    let scene = Scene::simulated();
    assert_eq!(scene.ask(KURED).await, "go");
    // As after a drain that failed: kured asks again at once.
    let again = "maint: worker2 was asked for a moment ago; only a fresh look can say go";
    assert_eq!(scene.ask(KURED).await, again);
    scene.later().await;
    scene.change(|world| world.records[0]["status"]["kured"]["closing"] = json!({"epoch": 2}));
    assert_eq!(scene.ask(KURED).await, "maint: worker2: its go was withdrawn");
    // The record was withdrawn between the two, and memory knows the refusal only.
    scene.change(|world| world.records[0]["status"]["kured"]["closing"] = Value::Null);
    assert_eq!(scene.ask(KURED).await, "maint: worker2: its go was withdrawn");
    scene.later().await;
    assert_eq!(scene.ask(KURED).await, "go");
    assert_eq!(scene.fake.looks.load(Ordering::SeqCst), 3);
    // The leader is lost: nobody renews what it granted.
    scene.env.clock.sleep(Duration::from_secs(30)).await;
    assert!(scene.ask(KURED).await.starts_with("maint: worker2: its go ended at "));
}

#[tokio::test(start_paused = true)]
async fn what_is_not_ready_in_time_is_a_no() {
    for delay in [Duration::from_millis(801), Duration::from_secs(2), Duration::from_secs(86_400)] {
        let scene = Scene::simulated();
        scene.change(|world| world.delay = delay);
        let begun = scene.env.clock.instant();
        let reply = scene.questions.answer("worker2", KURED).await;
        assert_eq!(scene.env.clock.instant().duration_since(begun), BUDGET, "{delay:?}");
        assert_eq!(word(&reply), "maint: the API server did not answer in time for worker2", "{delay:?}");
    }
    let scene = Scene::simulated();
    scene.change(|world| world.delay = Duration::from_millis(799));
    assert_eq!(scene.ask(KURED).await, "go");
}

#[tokio::test(start_paused = true)]
async fn many_questions_at_once_cost_few_looks() {
    let scene = Scene::simulated();
    scene.change(|world| world.delay = Duration::from_millis(500));
    let asks = (0..500).map(|number| {
        let (questions, node) = (Arc::clone(&scene.questions), format!("worker{number}"));
        async move { questions.answer(&node, OTHER).await }
    });
    let begun = scene.env.clock.instant();
    let words: Vec<String> = futures_util::future::join_all(asks).await.iter().map(word).collect();
    assert!(scene.env.clock.instant().duration_since(begun) <= BUDGET);
    assert_eq!(words.iter().filter(|word| *word == "go").count(), 1, "worker2 alone has a grant");
    assert!(words.iter().all(|word| word == "go" || word.starts_with("maint: ")));
    let most = scene.fake.most_at_once.load(Ordering::SeqCst);
    assert!(most <= LOOKS, "{most}");
    // The same node, known by now.
    scene.later().await;
    let before = scene.fake.looks.load(Ordering::SeqCst);
    let asks = (0..500).map(|_| {
        let questions = Arc::clone(&scene.questions);
        async move { questions.answer("worker2", OTHER).await }
    });
    let words: Vec<String> = futures_util::future::join_all(asks).await.iter().map(word).collect();
    assert_eq!(words.iter().filter(|word| *word == "go").count(), 1);
    assert_eq!(scene.fake.looks.load(Ordering::SeqCst) - before, 1);
    println!("figure kured.looks_of_500_questions {} looks", scene.fake.looks.load(Ordering::SeqCst));
}

#[tokio::test(start_paused = true)]
async fn a_name_that_no_node_can_have_costs_no_look() {
    let scene = Scene::simulated();
    let long = "a".repeat(254);
    for name in ["", "$(KURED_NODE_ID)", "Worker2", "worker2,metadata.name!=x", "a..b", "-a", "a-", "wörker", &long] {
        let reply = scene.questions.answer(name, KURED).await;
        assert_eq!(reply.status, 422, "{name}");
    }
    assert_eq!(scene.fake.looks.load(Ordering::SeqCst), 0);
    let reply = scene.questions.answer("worker7", KURED).await;
    assert_eq!(word(&reply), "maint: there is no node worker7: is kured's --node-id the node's name?");
    assert_eq!((scene.fake.writes(), scene.env.tasks.count()), (vec![], 0));
}

#[tokio::test(start_paused = true)]
async fn a_prometheus_behind_us_is_asked_for_each_go_and_for_nothing_else() {
    let url = "http://prometheus:9090/api/v1/query?query=ALERTS".to_owned();
    let vector = |samples: &str| {
        Ok((200, format!(r#"{{"status":"success","data":{{"resultType":"vector","result":[{samples}]}}}}"#)))
    };
    let alert = r#"{"metric":{"alertname":"NodeDown","alertstate":"pending"},"value":[1,"1"]}"#;
    let rows: [(&str, Option<Result<(u16, String), String>>, &str); 5] = [
        ("no alerts", Some(vector("")), "go"),
        ("an alert", Some(vector(alert)), "maint: alerts of Prometheus: NodeDown"),
        ("refused", Some(Err("refused".to_owned())), "maint: Prometheus could not be asked: refused"),
        ("500", Some(Ok((500, String::new()))), "maint: Prometheus answered 500 without JSON"),
        ("hangs", None, "maint: Prometheus could not be asked: no answer within 0.5 s"),
    ];
    for (row, answer, wanted) in rows {
        let prometheus = |settings: &mut Settings| settings.kured.prometheus = "http://prometheus:9090/".to_owned();
        let scene = Scene::new(crate::testing::env(), prometheus);
        scene.pages.answers.lock().expect("lock").extend(answer.map(|answer| (url.clone(), answer)));
        let begun = scene.env.clock.instant();
        assert_eq!(word(&scene.questions.answer("worker2", KURED).await), wanted, "{row}");
        assert!(scene.env.clock.instant().duration_since(begun) <= BUDGET, "{row}");
        scene.later().await;
        scene.change(|world| world.records[0]["status"]["intent"] = Value::Null);
        assert_ne!(scene.ask(KURED).await, "go", "{row}");
        assert_eq!(scene.pages.asked.lock().expect("lock").len(), 1, "{row}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_kured_that_filters_alerts_hears_every_no_as_an_error() {
    let scene = Scene::simulated();
    scene.change(|world| {
        world.records.clear();
        world.daemon_set["spec"]["template"]["spec"]["containers"][0]["args"] = json!(["--alert-filter-regexp=^maint"]);
    });
    assert_eq!(scene.questions.answer("worker2", KURED).await.status, 422);
    scene.later().await;
    scene.change(|world| world.daemon_set["spec"]["template"]["spec"]["containers"][0]["args"] = json!([]));
    assert_eq!(scene.questions.answer("worker2", KURED).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn what_was_asked_last_is_shown() {
    let scene = Scene::simulated();
    scene.ask(KURED).await;
    let shown = scene.questions.shown();
    assert_eq!(
        (&shown[0]["node"], &shown[0]["answer"], &shown[0]["source"]),
        (&json!("worker2"), &json!("go"), &json!("kured"))
    );
}
