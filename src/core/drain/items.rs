//! Known ways in which drains of other tools go wrong, and what shows that this one does not: each by its number in the
//! list that the drain engine was specified by.

/// What shows an item.
enum Shown {
    /// A pure test, by its file and name.
    Here(File, &'static str),
    /// A test that needs an executor, a server, or a whole night.
    Elsewhere(File, &'static str),
}

use Shown::{Elsewhere, Here};

/// A file with tests.
#[derive(Debug, Clone, Copy)]
enum File {
    Budgets,
    Next,
    Plan,
    Classify,
    Rules,
    Waves,
    Warnings,
    Model,
    Record,
    BeforeCommit,
    WorkloadsGate,
    WindowGate,
    NodesGate,
    AttachmentsGate,
    Evictions,
    Eviction,
    Nights,
    Cases,
}

impl File {
    const fn text(self) -> &'static str {
        match self {
            Self::Budgets => include_str!("budgets/tests.rs"),
            Self::Next => include_str!("next/tests.rs"),
            Self::Plan => include_str!("plan/tests.rs"),
            Self::Classify => include_str!("classify.rs"),
            Self::Rules => include_str!("rules.rs"),
            Self::Waves => include_str!("waves.rs"),
            Self::Warnings => include_str!("warnings.rs"),
            Self::Model => include_str!("model.rs"),
            Self::Record => include_str!("../plan/drain.rs"),
            Self::BeforeCommit => include_str!("../plan/tests/before_commit.rs"),
            Self::WorkloadsGate => include_str!("../gates/workloads/tests.rs"),
            Self::WindowGate => include_str!("../gates/window/tests.rs"),
            Self::NodesGate => include_str!("../gates/nodes_ready/tests.rs"),
            Self::AttachmentsGate => include_str!("../gates/attachments/tests.rs"),
            Self::Evictions => include_str!("../../engine/drive/evictions/tests.rs"),
            Self::Eviction => include_str!("../../engine/execute/eviction/tests.rs"),
            Self::Nights => include_str!("../../sim/night/tests/drains.rs"),
            Self::Cases => include_str!("../../../tests/cluster/cases/drain_waits.rs"),
        }
    }
}

const MODEL: &str = "whatever_is_answered_nothing_is_sent_in_vain_and_every_pod_goes_in_the_end";
const WHO: &str = "who_is_asked_and_who_waits_for_what";
const VERDICTS: &str = "each_budget_has_a_verdict_and_what_helps";
const ORDER: &str = "every_budget_is_asked_in_the_order_of_the_server";
const CLASSES: &str = "what_stays_what_goes_and_what_never_goes";
const ENDS: &str = "gates_and_deadlines";
const NODE: &str = "the_node";
const ANSWERS: &str = "each_answer_holds_its_pod_for_as_long_as_it_should";
const PACES: &str = "waits_grow_while_the_answer_stays_the_same";

/// Number, situation, what shows it.
#[rustfmt::skip]
const ITEMS: &[(u32, &str, Shown)] = &[
    (1, "a pod of a StatefulSet that runs on another node already", Here(File::Next, WHO)),
    (2, "a fresh pod of the same name is not evicted instead", Here(File::Model, MODEL)),
    (3, "a stale pod object is not tried again", Elsewhere(File::Eviction, "a_pod_that_is_no_longer_what_was_planned_is_not_asked_for")),
    (5, "waiting by name never ends: uids are compared", Elsewhere(File::Nights, "every_hard_drain_ends_as_it_must")),
    (6, "two budgets are both named, and not asked again at once", Here(File::Plan, "what_never_goes_is_said_first_with_what_helps")),
    (7, "one replica with minAvailable 1 is told as permanent, with what helps", Here(File::Budgets, VERDICTS)),
    (9, "the message of a budget that cannot be computed", Here(File::Budgets, ORDER)),
    (10, "pods without a scale subresource: a whole number is advised", Here(File::Budgets, VERDICTS)),
    (11, "a replacement that cannot be scheduled", Here(File::Next, "a_replacement_that_cannot_be_scheduled_is_the_reason_that_is_told")),
    (13, "what is refused is refused before the cordon", Elsewhere(File::WorkloadsGate, "nothing_is_lost")),
    (14, "a drain that hangs says why", Here(File::BeforeCommit, ENDS)),
    (15, "a drain has a deadline", Here(File::BeforeCommit, ENDS)),
    (17, "waiting costs no processor time", Elsewhere(File::Nights, "a_drain_that_waits_costs_few_requests_and_no_writes")),
    (18, "controllers are listed once, not read one by one", Here(File::Classify, CLASSES)),
    (19, "the API goes away and comes back", Here(File::BeforeCommit, ENDS)),
    (21, "a namespace that is deleted meanwhile is waited for", Here(File::Next, ANSWERS)),
    (22, "orphans of a DaemonSet", Here(File::Classify, CLASSES)),
    (23, "finished pods are left", Here(File::Classify, CLASSES)),
    (25, "old servers skipped the grace: one without policy/v1 (before 1.21) is not drained", Here(File::Budgets, "budgets_that_could_not_be_read_let_nobody_go")),
    (26, "a preview that says what blocks", Here(File::Plan, "the_verdict_comes_first_then_why")),
    (27, "a node that fails does not stop the others", Elsewhere(File::Nights, "after_a_drain_that_failed_another_node_can_be_drained")),
    (29, "evictions of one budget go one after the other, on what it says now", Here(File::Next, "what_was_accepted_or_is_on_its_way_is_not_allowed_twice")),
    (30, "a label leaves a pod out", Here(File::Rules, "the_first_rule_counts_and_the_label_counts_more")),
    (31, "no last wave of DaemonSet pods, which would come back at once: it is told what stops them in order", Here(File::Warnings, "a_rule_that_names_a_daemon_set_is_told_to_move_nothing")),
    (33, "storage goes last by a rule", Here(File::Waves, "pods_go_in_the_order_of_their_waves")),
    (34, "DaemonSet pods are not evicted", Here(File::Classify, CLASSES)),
    (35, "a webhook that moves something is asked less and less often", Here(File::Next, PACES)),
    (37, "static names: neither stuck nor evicted elsewhere", Here(File::Model, MODEL)),
    (38, "a webhook that denies is tried until the deadline", Elsewhere(File::Nights, "every_hard_drain_ends_as_it_must")),
    (39, "no silent force: only a rule or an annotation lets a bare pod go", Here(File::Rules, "only_the_word_true_lets_a_bare_pod_go")),
    (41, "a failed drain is undone at once", Here(File::BeforeCommit, ENDS)),
    (42, "a cordon that was there before stays", Here(File::BeforeCommit, NODE)),
    (43, "after a failed drain nobody starts again at once", Elsewhere(File::WindowGate, "answers")),
    (45, "no drain while another node is down", Elsewhere(File::NodesGate, "the_others_before_the_act")),
    (46, "an answer that is not known is no success", Here(File::Next, ANSWERS)),
    (47, "a pod that waits holds no place", Elsewhere(File::Evictions, "one_of_a_lane_is_on_its_way_and_a_refusal_is_told_at_once")),
    (49, "somebody else's cordon is not taken off", Here(File::BeforeCommit, NODE)),
    (50, "putting back is tried until it is done", Here(File::BeforeCommit, ENDS)),
    (51, "a pinned pod is named", Here(File::Warnings, "what_a_person_should_know")),
    (53, "a try changes nothing that is told while the reason is the same", Here(File::Record, "a_line_keeps_its_time_while_it_says_the_same")),
    (54, "budgets are asked before an eviction is sent", Here(File::Model, MODEL)),
    (55, "whoever takes over goes on", Here(File::BeforeCommit, "an_interrupted_drain_can_go_on")),
    (57, "at the deadline it is said who did not go and why", Here(File::BeforeCommit, ENDS)),
    (58, "a node whose kubelet is gone: told with what budgets are worth then; no pod is skipped, since whether its containers ended is not known", Here(File::Warnings, "a_silent_kubelet_is_said_once_where_something_has_to_go")),
    (59, "critical pods go after the others", Here(File::Next, WHO)),
    (61, "a database of one instance: what helps is told", Here(File::Budgets, VERDICTS)),
    (62, "the primary of a database moves first", Elsewhere(File::Cases, "operator_moves_the_primary")),
    (63, "volumes are detached before the node goes down", Elsewhere(File::AttachmentsGate, "the_table")),
    (65, "no replacement is started before the eviction: what is away meanwhile is told before, with the command that helps", Here(File::Warnings, "a_deployment_of_one_replica_is_told_how_to_stay_up")),
    (66, "a failed drain leaves no cordon of ours", Here(File::BeforeCommit, ENDS)),
];

#[test]
fn every_known_fault_of_drains_is_shown() {
    let (mut here, mut elsewhere) = (0, 0);
    for (index, (number, situation, shown)) in ITEMS.iter().enumerate() {
        assert!(index == 0 || ITEMS[index - 1].0 < *number, "D{number:02} stands in its order, once");
        let (file, test) = match shown {
            Here(file, test) => {
                here += 1;
                (file, test)
            }
            Elsewhere(file, test) => {
                elsewhere += 1;
                (file, test)
            }
        };
        assert!(file.text().contains(&format!("fn {test}(")), "D{number:02} ({situation}): no test {test} in {file:?}");
    }
    assert_eq!(here + elsewhere, 50, "as many as were specified");
    println!("figure drain.items {} items", here + elsewhere);
    println!("figure drain.items.pure {here} items");
}
