//! Tokens over a client that answers from a script, in simulated time.

use std::sync::Mutex as StdMutex;

use super::*;
use crate::client::{FailureClass, classify};
use crate::testing::{client, env, json as answer, silence, status};

const PATH: &str = "/api/v1/namespaces/maint/serviceaccounts/maint-probe/token";

/// What the API says to a TokenRequest.
#[derive(Clone, Copy)]
enum Says {
    /// A token of this lifetime.
    Yes(u64),
    Forbidden,
    Nothing,
    Rubbish,
}

/// An account whose n-th request is answered by the n-th word (the last one counts on), and how many were sent.
fn account(clock: &Clock, words: &'static [Says]) -> (Arc<AccountToken>, Arc<StdMutex<usize>>) {
    let sent = Arc::new(StdMutex::new(0));
    let count = Arc::clone(&sent);
    let api = client(move |request| {
        assert_eq!((request.method(), request.uri().path()), (&Method::POST, PATH));
        let mut count = count.lock().expect("lock");
        let word = words[(*count).min(words.len() - 1)];
        *count += 1;
        match word {
            Says::Yes(seconds) => {
                let token = format!("t{}", *count);
                answer(201, &json!({"spec": {"expirationSeconds": seconds}, "status": {"token": token}}))
            }
            Says::Forbidden => status(403, "Forbidden", "maint may not"),
            Says::Nothing => silence(),
            Says::Rubbish => answer(201, &json!({"status": {}})),
        }
    });
    (Arc::new(AccountToken::new(api, clock.clone(), "maint", "maint-probe")), sent)
}

#[tokio::test(start_paused = true)]
async fn a_token_is_asked_for_once_and_renewed_after_half_of_its_life() {
    let (env, _owner) = env();
    let (token, sent) = account(&env.clock, &[Says::Yes(600)]);
    let many = futures_util::future::join_all((0..50).map(|_| token.bearer())).await;
    assert!(many.iter().all(|bearer| bearer.as_ref().is_ok_and(|bearer| bearer == "Bearer t1")));
    env.clock.sleep(Duration::from_secs(299)).await;
    assert_eq!(token.bearer().await.expect("a token"), "Bearer t1");
    env.clock.sleep(Duration::from_secs(2)).await;
    assert_eq!(token.bearer().await.expect("a token"), "Bearer t2");
    assert_eq!(*sent.lock().expect("lock"), 2);
    assert!(!format!("{token:?}{:?}", token.bearer().await).contains("t2"), "it is never shown");
}

#[tokio::test(start_paused = true)]
async fn without_a_new_token_the_old_one_serves_to_its_end_and_then_nothing_does() {
    let (env, _owner) = env();
    let (token, sent) = account(&env.clock, &[Says::Yes(600), Says::Forbidden]);
    assert!(token.bearer().await.is_ok());
    env.clock.sleep(Duration::from_secs(400)).await;
    assert_eq!(token.bearer().await.expect("the old one"), "Bearer t1");
    assert_eq!(token.bearer().await.expect("the old one"), "Bearer t1");
    assert_eq!(*sent.lock().expect("lock"), 2, "a failure is not asked for again at once");
    env.clock.sleep(Duration::from_secs(171)).await;
    let error = token.bearer().await.expect_err("29 s before its end").to_string();
    assert_eq!(error, "no token for service account maint/maint-probe: not allowed: maint may not");
}

#[tokio::test(start_paused = true)]
async fn what_is_no_token_is_told_in_time() {
    let rows: [(&str, &'static [Says], &str); 3] = [
        ("forbidden", &[Says::Forbidden], "not allowed: maint may not"),
        ("silence", &[Says::Nothing], "no answer within 3 s"),
        ("rubbish", &[Says::Rubbish], "the answer has no status.token"),
    ];
    for (row, words, wanted) in rows {
        let (env, _owner) = env();
        let (token, sent) = account(&env.clock, words);
        let begun = env.clock.instant();
        let many = futures_util::future::join_all((0..9).map(|_| token.bearer())).await;
        assert!(env.clock.instant().duration_since(begun) < Duration::from_secs(5), "{row}: too late");
        for result in many {
            let error = result.expect_err(row).to_string();
            assert!(error.ends_with(wanted), "{row}: {error}");
        }
        assert_eq!(*sent.lock().expect("lock"), 1, "{row}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_not_taken_is_asked_for_anew_but_not_in_a_hurry() {
    let (env, _owner) = env();
    let (token, sent) = account(&env.clock, &[Says::Yes(600)]);
    let server = client(|request| {
        let known = request.headers().get(AUTHORIZATION).is_some_and(|bearer| bearer != "Bearer t1");
        if known { answer(200, &json!({})) } else { status(401, "Unauthorized", "Unauthorized") }
    });
    let probing = with_token(server, &token);
    let ask = || async {
        let request = http::Request::get("/readyz").body(Body::empty()).expect("a request");
        probing.send(request).await.expect("an answer").status().as_u16()
    };
    assert_eq!((ask().await, ask().await, *sent.lock().expect("lock")), (401, 401, 1));
    env.clock.sleep(Duration::from_secs(31)).await;
    assert_eq!((ask().await, ask().await, *sent.lock().expect("lock")), (401, 200, 2));
}

#[tokio::test(start_paused = true)]
async fn a_missing_token_is_a_matter_of_credentials_and_nothing_is_sent() {
    let (env, _owner) = env();
    let (token, _) = account(&env.clock, &[Says::Forbidden]);
    let probing = with_token(client(|_| panic!("it was sent")), &token);
    let request = http::Request::get("/readyz").body(Body::empty()).expect("a request");
    let failure = classify(&probing.send(request).await.expect_err("no token"));
    assert_eq!(failure.class, FailureClass::Credentials, "{failure:?}");
    assert!(failure.detail.contains("maint/maint-probe"), "{}", failure.detail);
}
