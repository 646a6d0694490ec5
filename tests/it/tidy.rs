//! Rules of the tree that no compiler checks. `MAINT_BLESS=1` writes what is generated instead of comparing it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use maint_core::api::Reason;
use maint_core::gates::{COMMON_REASONS, GATES};

use crate::support::{DUMP, maint, root};

/// Lines of a file from which it is worth splitting, and from which it must be.
const SOFT_CAP: usize = 400;
const HARD_CAP: usize = 700;

/// All files below a folder of the tree whose names end so.
pub fn files(below: &str, ends: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    walk(&root().join(below), ends, &mut found);
    found.sort();
    found
}

fn walk(folder: &Path, ends: &str, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.expect("an entry").path();
        if path.is_dir() && !path.ends_with("target") {
            walk(&path, ends, found);
        } else if path.to_string_lossy().ends_with(ends) {
            found.push(path);
        }
    }
}

fn sources() -> Vec<PathBuf> {
    let found: Vec<PathBuf> = ["src", "tests"].iter().flat_map(|folder| files(folder, ".rs")).collect();
    assert!(found.len() > 50, "found only {} sources", found.len());
    found
}

pub fn text_of(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

pub fn none(what: &str, found: &[String]) {
    assert!(found.is_empty(), "{what}:\n{}", found.join("\n"));
}

/// Lines of code with their numbers: no comments, since those may speak of what is forbidden.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line))
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
}

#[test]
fn every_source_begins_with_what_it_is_for() {
    let bad: Vec<String> =
        sources().iter().filter(|path| !text_of(path).starts_with("//! ")).map(|path| shown(path)).collect();
    none("the first line is no `//! ` sentence", &bad);
}

#[test]
fn the_pure_package_is_pure() {
    let forbidden = [
        "tokio",
        "kube::Client",
        "kube::Api",
        "reqwest",
        "hyper",
        "std::fs",
        "std::env",
        "std::net",
        "std::thread",
        "std::process",
        "std::time::Instant",
        "std::time::SystemTime",
        "Timestamp::now",
        "Zoned::now",
        "async fn",
        "println!",
        "rand::",
    ];
    let mut bad = Vec::new();
    for path in files("src/core", ".rs") {
        for (line, text) in code(&text_of(&path)) {
            // A figure is printed by the test that measures it.
            if text.contains("println!(\"figure ") {
                continue;
            }
            for word in forbidden.iter().filter(|word| text.contains(**word)) {
                bad.push(format!("{}:{line}: {word}", shown(&path)));
            }
        }
    }
    none("src/core is pure", &bad);
}

fn dependencies(manifest: &str) -> BTreeSet<String> {
    let manifest: toml::Table = text_of(&root().join(manifest)).parse().expect("TOML");
    let tables = ["dependencies", "build-dependencies"].iter().filter_map(|table| manifest.get(*table)?.as_table());
    tables.flat_map(|table| table.keys().cloned()).collect()
}

#[test]
fn arrows_point_from_maint_to_core() {
    // Cargo.toml, the members it may depend on, packages it must not.
    let io = ["tokio", "kube", "kube-client", "kube-runtime", "reqwest", "hyper", "axum", "tower", "rustls"];
    let rows: &[(&str, &[&str], &[&str])] = &[
        ("src/core/Cargo.toml", &[], &io),
        ("src/engine/Cargo.toml", &["maint-core"], &["anyhow", "clap"]),
        ("src/sim/Cargo.toml", &["maint-core", "maint-engine"], &["anyhow", "clap"]),
        ("Cargo.toml", &["maint-core", "maint-engine", "maint-sim"], &[]),
    ];
    for (manifest, allowed, forbidden) in rows {
        for name in dependencies(manifest) {
            let member = name.starts_with("maint-") && !allowed.contains(&name.as_str());
            assert!(!member && !forbidden.contains(&name.as_str()), "{manifest} must not depend on {name}");
        }
    }
}

/// Wrong versions of our own rules are for the simulated cluster: nobody gets them who did not ask by name.
#[test]
fn no_default_and_no_image_build_has_planted_bugs() {
    for manifest in ["Cargo.toml", "src/core/Cargo.toml", "src/engine/Cargo.toml", "src/sim/Cargo.toml"] {
        let text = text_of(&root().join(manifest));
        let features = text.parse::<toml::Table>().expect("TOML").get("features").cloned();
        let default = features.as_ref().and_then(|features| features.get("default"));
        assert_eq!(default, None, "{manifest} has default features");
        // The package that makes the program does not know of them at all.
        let lines = text.lines().filter(|line| line.contains("planted") && !line.starts_with('#')).count();
        assert_eq!(lines, usize::from(manifest != "Cargo.toml"), "{manifest}");
    }
    for path in files("deploy", "") {
        let asks = ["all-features", "features planted", "features=planted"];
        let bad = text_of(&path).lines().any(|line| asks.iter().any(|one| line.contains(one)));
        assert!(!bad, "{} may plant bugs", shown(&path));
    }
    let bugs = text_of(&root().join("src/core/planted.rs"));
    let names = bugs.lines().filter_map(|line| line.trim().split_once(", \"")).map(|(name, _)| name);
    let names: Vec<String> = names.map(|name| format!("planted::is(Bug::{name})")).collect();
    assert!(names.len() >= 30, "{names:?}");
    let rules: Vec<String> =
        ["src/core", "src/engine"].iter().flat_map(|below| files(below, ".rs")).map(|path| text_of(&path)).collect();
    let unused: Vec<&String> = names.iter().filter(|name| !rules.iter().any(|text| text.contains(*name))).collect();
    assert_eq!(unused, Vec::<&String>::new(), "they are planted nowhere");
}

#[test]
fn files_stay_readable() {
    let mut long = Vec::new();
    for path in sources() {
        let lines = text_of(&path).lines().count();
        if lines > SOFT_CAP {
            eprintln!("warning: {} has {lines} lines, more than {SOFT_CAP}", shown(&path));
        }
        if lines > HARD_CAP {
            long.push(format!("{} has {lines} lines, more than {HARD_CAP}", shown(&path)));
        }
    }
    none("split these", &long);
}

#[test]
fn the_main_file_stays_small() {
    let lines = text_of(&root().join("src/main.rs")).lines().count();
    assert!(lines < 60, "src/main.rs has {lines} lines");
}

#[test]
fn no_test_is_skipped() {
    // Written apart, so that this file does not name it.
    let skip = concat!("#[", "ignore");
    let bad: Vec<String> =
        sources().iter().filter(|path| text_of(path).contains(skip)).map(|path| shown(path)).collect();
    none("tests that never run prove nothing", &bad);
}

#[test]
fn the_top_level_is_as_agreed() {
    let agreed =
        ["Cargo.lock", "Cargo.toml", "LICENSE", "README.md", "config", "deploy", "runbooks", "src", "target", "tests"];
    let bad: Vec<String> = fs::read_dir(root())
        .expect("the root")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .filter(|name| !name.starts_with('.') && !agreed.contains(&name.as_str()))
        .collect();
    none("not agreed", &bad);
}

const HEADINGS: [&str; 6] =
    ["## Meaning", "## Impact", "## Diagnosis", "## Mitigation", "## What maint does meanwhile", "## Override"];

#[test]
fn every_reason_has_a_runbook_with_its_headings() {
    let mut bad = Vec::new();
    for reason in Reason::ALL {
        let Ok(text) = fs::read_to_string(root().join(format!("runbooks/{reason}.md"))) else {
            bad.push(format!("runbooks/{reason}.md is missing"));
            continue;
        };
        if text.lines().next() != Some(&format!("# {reason}")) {
            bad.push(format!("runbooks/{reason}.md does not begin with `# {reason}`"));
        }
        let found: Vec<&str> = text.lines().filter(|line| line.starts_with("## ")).collect();
        if found != HEADINGS {
            bad.push(format!("runbooks/{reason}.md has the headings {found:?}"));
        }
    }
    none("runbooks", &bad);
    println!("figure gates.count {} gates", GATES.len());
    println!("figure reasons.count {} reasons", Reason::ALL.len());
}

#[test]
fn every_runbook_has_a_reason() {
    let bad: Vec<String> = fs::read_dir(root().join("runbooks"))
        .into_iter()
        .flatten()
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .filter(|name| !["README.md", "operations", "decisions"].contains(&name.as_str()))
        .filter(|name| !Reason::ALL.iter().any(|reason| format!("{reason}.md") == *name))
        .collect();
    none("runbooks without a reason", &bad);
}

#[test]
fn the_index_of_runbooks_is_the_generated_one() {
    let mut text = String::from(
        "# Runbooks\n\nOne for each reason that maint gives, by the gate that gives it; `maint explain REASON` prints it.\n\
         Generated from the gate table by `MAINT_BLESS=1 cargo test --test it tidy`.\n",
    );
    let mut told = BTreeSet::new();
    let mut section = |title: &str, reasons: &[Reason]| {
        text.push_str(&format!("\n## {title}\n\n"));
        for reason in reasons {
            told.insert(*reason);
            text.push_str(&format!("- [{reason}]({reason}.md): {}\n", meaning(*reason)));
        }
    };
    section("Any gate", COMMON_REASONS);
    for gate in GATES {
        section(gate.id.as_str(), gate.reasons);
    }
    let rest: Vec<Reason> = Reason::ALL.iter().copied().filter(|reason| !told.contains(reason)).collect();
    if !rest.is_empty() {
        text.push_str("\n## Runs\n\n");
        for reason in rest {
            text.push_str(&format!("- [{reason}]({reason}.md): {}\n", meaning(reason)));
        }
    }
    for (title, folder) in [("Operations", "operations"), ("Decisions", "decisions")] {
        let found = files(&format!("runbooks/{folder}"), ".md");
        if found.is_empty() {
            continue;
        }
        text.push_str(&format!("\n## {title}\n\n"));
        for path in found {
            let document = text_of(&path);
            let heading = document.lines().next().unwrap_or_default().trim_start_matches("# ");
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            text.push_str(&format!("- [{heading}]({folder}/{name})\n"));
        }
    }
    same_or_bless(&root().join("runbooks/README.md"), &text);
}

/// The first sentence of a runbook's Meaning.
fn meaning(reason: Reason) -> String {
    let text = fs::read_to_string(root().join(format!("runbooks/{reason}.md"))).unwrap_or_default();
    let body = text.split_once("## Meaning\n").map_or("", |(_, rest)| rest);
    let paragraph =
        body.trim_start().split("\n\n").next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    paragraph.split_once(". ").map_or(paragraph.trim_end_matches('.'), |(sentence, _)| sentence).to_owned()
}

#[test]
fn the_readme_shows_what_is() {
    let readme = text_of(&root().join("README.md"));
    let mut gates = String::from("| gate | asks | default |\n|---|---|---|\n");
    for gate in GATES {
        gates.push_str(&format!("| `{}` | {} | {} |\n", gate.id, gate.doc, gate.default_policy));
    }
    let run = maint(&["check", "worker1", "--from", DUMP]);
    let blocked = format!("```\n{}```\n", run.stdout);
    let help = maint(&["--help"]).stdout;
    let codes = help.split_once("Exit codes:\n").expect("the help tells the exit codes").1;
    let codes = codes.lines().fold(String::from("```\n"), |text, line| text + line + "\n") + "```\n";
    let mut wanted = readme.clone();
    for (name, text) in [("gates", gates), ("blocked", blocked), ("exit codes", codes)] {
        wanted = fill(&wanted, name, &text);
    }
    same_or_bless(&root().join("README.md"), &wanted);
}

#[test]
fn the_readme_begins_with_commands_that_work() {
    let readme = text_of(&root().join("README.md"));
    let commands: Vec<&str> = readme
        .split("```console\n")
        .skip(1)
        .flat_map(|block| block.split("```").next().unwrap_or_default().lines())
        .filter_map(|line| line.strip_prefix("$ "))
        .collect();
    let check = format!("cargo run --release -- check worker2 --from {DUMP}");
    let first: Vec<&str> = commands.iter().take(3).copied().collect();
    assert_eq!(first, ["cargo run --release -- demo", "cargo test --release", check.as_str()]);
}

#[test]
fn links_of_every_page_lead_somewhere() {
    let pages = files("", ".md");
    assert!(pages.len() > 60, "found only {} pages", pages.len());
    let mut bad = Vec::new();
    for page in pages {
        let text = text_of(&page);
        let folder = page.parent().expect("a folder");
        let links = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#', ' ']).next());
        for link in links.filter(|link| !link.is_empty() && !link.starts_with("http")) {
            if !folder.join(link).exists() {
                bad.push(format!("{}: {link}", shown(&page)));
            }
        }
    }
    none("links to nothing", &bad);
}

#[test]
fn every_decision_has_a_number_of_its_own_and_no_number_is_left_out() {
    let mut bad = Vec::new();
    for (index, path) in files("runbooks/decisions", ".md").iter().enumerate() {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let wanted = format!("{:04}", index + 1);
        if name.split('-').next() != Some(wanted.as_str()) {
            bad.push(format!("{name} comes where {wanted} is wanted"));
        }
        let heading = text_of(path).lines().next().unwrap_or_default().to_owned();
        if !heading.starts_with(&format!("# {}", name.split('-').next().unwrap_or_default())) {
            bad.push(format!("{name} has the heading `{heading}`"));
        }
    }
    none("decisions", &bad);
    // What a page calls `decision NNNN` is there.
    let known: Vec<String> = files("runbooks/decisions", ".md").iter().map(|path| shown(path)).collect();
    for page in files("", ".md") {
        for rest in text_of(&page).split("decision ").skip(1) {
            let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
            let there = known.iter().any(|path| path.contains(&format!("/{number}-")));
            assert!(number.len() != 4 || there, "{} names decision {number}", shown(&page));
        }
    }
}

/// Puts text between `<!-- NAME -->` and `<!-- end of NAME -->`.
fn fill(document: &str, name: &str, text: &str) -> String {
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->\n"));
    let (before, rest) = document.split_once(&begin).unwrap_or_else(|| panic!("README.md lacks {begin}"));
    let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("README.md lacks {end}"));
    format!("{before}{begin}{text}{end}{after}")
}

pub fn same_or_bless(path: &Path, wanted: &str) {
    let found = fs::read_to_string(path).unwrap_or_default();
    if found == wanted {
        return;
    }
    if std::env::var_os("MAINT_BLESS").is_some() {
        fs::write(path, wanted).expect("written");
        return;
    }
    panic!("{} differs from what is generated; MAINT_BLESS=1 writes it. Wanted:\n{wanted}", shown(path));
}
