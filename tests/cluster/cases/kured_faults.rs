//! What breaks between maint and kured, each thing on an installation of both. Whatever it is: nobody reboots without a
//! grant, no two nodes are away at a time, and in the end no lock is held and nothing is cordoned
//! ([`Partners::ensure_safe`], which counts in the audit log and in what each kured was told).
//!
//! | what happens | case |
//! |---|---|
//! | nothing: all three nodes wish, with kured's annotations and taints | `kured::a_night_by_the_manifests` (`kured_night.rs`) |
//! | slow answers, no maint, another leader, a wiped lock, while all three nodes wish | `kured::all_nodes_wish_while_much_breaks` |
//! | maint is down, before a run | `kured::nobody_answers_and_nobody_reboots` |
//! | maint is down, in the middle of a run | `kured::both_replicas_go_in_the_middle` |
//! | answers come 2 s late | `kured::a_slow_answer_is_waited_for` |
//! | answers never come; answers are a 500 | `kured::nobody_answers_and_nobody_reboots` |
//! | answers never come, from the cordon on | `kured::its_question_hangs_after_the_cordon` |
//! | another leader between grant and lock | `kured::leader_changes_between_go_and_lock` |
//! | the leader is killed in a phase, from Pending to Settling | `kured::leader_is_killed_in_every_phase` |
//! | the leader is killed in BackingOut, the lock being garbage by then | `kured::leader_is_killed_while_backing_out` |
//! | the grant is withdrawn in the minutes between go and lock | `kured::a_go_is_withdrawn_before_the_lock` |
//! | kured's drain fails | `kured::its_drain_fails` |
//! | its reboot command fails | `kured::its_reboot_command_fails` |
//! | it is killed while it holds the lock | `kured::it_is_killed_while_it_holds_the_lock` |
//! | its API server stops: before a run; between go and lock | `kured::its_api_server_stops` |
//! | it looks once an hour: too seldom for the hand-over; seldom enough to be told | `kured::it_asks_once_an_hour` |
//! | its pod is not Ready; its process is gone after the cordon | `kured::it_goes_and_nobody_starts_it_anew` |
//! | a stranger asks for a healthy node | `kured::a_stranger_asks_for_a_healthy_node` |
//! | concurrency 2; a single lock under it | `kured::two_at_a_time_for_kured_is_one_for_maint` |
//! | foreign holder, ghost, garbage, a list under concurrency 1 | `kured::locks_of_others_start_nothing` |
//! | a foreign holder and a ghost after the cordon | `kured::locks_of_others_appear_after_the_cordon` |
//! | GitOps wipes the lock: maint's, and kured's while it drains | `kured::its_lock_is_wiped_twice` |

mod acts;
mod all;
mod answers;
mod leaders;
mod locks;

use std::sync::Arc;

use anyhow::Result;

use super::kured_partner::{AUTO, Partners};
use super::run::workload;
use super::{Case, case, long};
use crate::harness::Cluster;
use crate::harness::maint::Maint;
use crate::harness::service::Way;
use crate::harness::wait::Limit;

pub fn cases() -> Vec<Case> {
    let mut all = vec![
        case("kured::nobody_answers_and_nobody_reboots", answers::nobody),
        case("kured::a_stranger_asks_for_a_healthy_node", answers::stranger),
        case("kured::locks_of_others_start_nothing", locks::of_others),
        case("kured::a_go_is_withdrawn_before_the_lock", locks::withdrawn),
        case("kured::leader_changes_between_go_and_lock", leaders::changes),
    ];
    all.extend(long(vec![
        case("kured::a_slow_answer_is_waited_for", answers::slow),
        case("kured::both_replicas_go_in_the_middle", answers::both_go),
        case("kured::its_question_hangs_after_the_cordon", answers::hangs),
        case("kured::locks_of_others_appear_after_the_cordon", locks::in_the_middle),
        Case {
            limit: Limit::seconds("case", 360),
            ..case("kured::leader_is_killed_in_every_phase", leaders::killed_in_every_phase)
        },
        Case { limit: Limit::seconds("case", 480), ..case("kured::all_nodes_wish_while_much_breaks", all::wish) },
        case("kured::leader_is_killed_while_backing_out", leaders::killed_while_backing_out),
        case("kured::its_lock_is_wiped_twice", locks::wiped),
        Case {
            limit: Limit::seconds("case", 360),
            ..case("kured::two_at_a_time_for_kured_is_one_for_maint", locks::two_slots)
        },
        case("kured::its_drain_fails", acts::drain_fails),
        case("kured::its_reboot_command_fails", acts::reboot_fails),
        case("kured::it_is_killed_while_it_holds_the_lock", acts::killed_with_the_lock),
        case("kured::its_api_server_stops", acts::api_server_stops),
        case("kured::it_asks_once_an_hour", acts::once_an_hour),
        case("kured::it_goes_and_nobody_starts_it_anew", acts::gone),
    ]));
    println!("figure kured.cluster_faults {} cases", all.len());
    all
}

/// The node that wishes; the replicas begin with the API servers of the other two.
const NODE: &str = "worker2";
/// Three of kured's periods and more, and short enough to wait for; one sweep, since the matrix is not what breaks here.
const SHORT: [(&str, u64); 4] =
    [("handover_timeout_seconds", 30), ("sweeps", 1), ("sweep_interval_seconds", 1), ("settle_for_seconds", 1)];

/// Both partners, with these changes of kured's flags; nothing runs yet.
async fn installed(cluster: &Arc<Cluster>, changes: &[(&str, &str)]) -> Result<Partners> {
    let maint = Maint::install_with(cluster, &SHORT, AUTO).await?;
    Partners::install(cluster, maint, changes).await
}

/// Both at work, and a record of the node's wish. The way is this one from the beginning.
async fn wishing(cluster: &Arc<Cluster>, way: Way) -> Result<(Partners, String)> {
    workload(cluster, 2).await?;
    let mut partners = installed(cluster, &[]).await?;
    let name = begin(&mut partners, way).await?;
    Ok((partners, name))
}

/// Starts both and waits for the record.
async fn begin(partners: &mut Partners, way: Way) -> Result<String> {
    partners.service.set(NODE, way)?;
    partners.kureds.require(NODE, true)?;
    partners.kureds.start()?;
    partners.start_maint().await?;
    partners.wait_wish(NODE).await
}
