//! The table of rights as YAML for kubectl: a role and a binding for each account and place.

use super::{Account, Grant, Part, Place, Subject, grants};

const HEAD: &str = "\
# Generated from the table in src/core/api/rights by `MAINT_BLESS=1 cargo test --test it deploy`: change it there.
";
const RBAC: &str = "rbac.authorization.k8s.io";

/// The roles and bindings of one folder.
pub(super) fn text(part: Part) -> String {
    let grants: Vec<Grant> = grants().into_iter().filter(|grant| grant.part == part).collect();
    let mut text = HEAD.to_owned();
    for account in Account::ALL {
        let of_account = || grants.iter().filter(|grant| grant.account == *account);
        let mut places: Vec<Place> = of_account().map(|grant| grant.place).collect();
        places.sort_unstable();
        places.dedup();
        for place in places {
            let of_place: Vec<&Grant> = of_account().filter(|grant| grant.place == place).collect();
            text.push_str(&role(*account, place, &of_place));
            if account.is_ours() {
                text.push_str(&binding(*account, place));
            }
        }
    }
    text
}

fn head(kind: &str, account: Account, place: Place) -> String {
    let (prefix, namespace) = match place {
        Place::Cluster => ("Cluster", String::new()),
        Place::Namespace(namespace) => ("", format!("  namespace: {namespace}\n")),
    };
    format!(
        "---\napiVersion: {RBAC}/v1\nkind: {prefix}{kind}\nmetadata:\n  name: {}\n{namespace}  labels:\n    \
         app.kubernetes.io/part-of: maint\n",
        account.name()
    )
}

fn role(account: Account, place: Place, grants: &[&Grant]) -> String {
    let mut text = head("Role", account, place);
    text.push_str("rules:\n");
    let mut told = "";
    let mut done: Vec<&Grant> = Vec::new();
    for grant in grants {
        if done.contains(grant) {
            continue;
        }
        let alike: Vec<&Grant> = grants.iter().copied().filter(|other| are_alike(grant, other)).collect();
        // One comment for rules that follow each other and have the same reason.
        if told != grant.why {
            text.push_str(&format_comment(grant.why));
            told = grant.why;
        }
        text.push_str(&rule(&alike));
        done.extend(alike);
    }
    text
}

fn format_comment(why: &str) -> String {
    format!("  # {why}\n")
}

/// Whether two rights make one rule.
fn are_alike(one: &Grant, other: &Grant) -> bool {
    let same_kind = match (one.subject, other.subject) {
        (Subject::Resource { group, names, .. }, Subject::Resource { group: other_group, names: other_names, .. }) => {
            group == other_group && names == other_names
        }
        (one, other) => one == other,
    };
    same_kind && one.verbs == other.verbs && one.why == other.why
}

fn rule(alike: &[&Grant]) -> String {
    let Some(first) = alike.first() else { return String::new() };
    let verbs = first.verbs.join(", ");
    match first.subject {
        Subject::Path(path) => format!("  - nonResourceURLs: [{path}]\n    verbs: [{verbs}]\n"),
        Subject::Resource { group, names, .. } => {
            let resources: Vec<&str> = alike
                .iter()
                .filter_map(|grant| match grant.subject {
                    Subject::Resource { resource, .. } => Some(resource),
                    Subject::Path(_) => None,
                })
                .collect();
            let group = if group.is_empty() { "\"\"" } else { group };
            let names =
                if names.is_empty() { String::new() } else { format!("    resourceNames: [{}]\n", names.join(", ")) };
            format!(
                "  - apiGroups: [{group}]\n    resources: [{}]\n{names}    verbs: [{verbs}]\n",
                resources.join(", ")
            )
        }
    }
}

fn binding(account: Account, place: Place) -> String {
    let kind = match place {
        Place::Cluster => "ClusterRole",
        Place::Namespace(_) => "Role",
    };
    let name = account.name();
    format!(
        "{}roleRef:\n  apiGroup: {RBAC}\n  kind: {kind}\n  name: {name}\nsubjects:\n  - kind: ServiceAccount\n    name: \
         {name}\n    namespace: {}\n",
        head("RoleBinding", account, place),
        super::OWN
    )
}
