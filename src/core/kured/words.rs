//! The command line and environment of a container, as its process gets them.
//!
//! The kubelet expands `$(NAME)` in command, arguments and environment from the container's own variables and leaves
//! what it cannot resolve as it is; `$$` is a `$` that is not expanded (k8s.io/kubernetes third_party/forked/golang/
//! expansion). A variable that comes from elsewhere has a value that maint cannot know.

use crate::facts::Container;

/// What a reference to a variable became.
enum Known<'a> {
    /// Its value.
    Value(&'a str),
    /// It is there, and its value is elsewhere.
    Elsewhere,
    /// There is none: the reference stays as it is.
    Missing,
}

/// A text after expansion; none where a value from elsewhere is in it.
type Expanded = Option<String>;

/// The environment and words of one container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Words {
    /// Variables in order, later ones win; none where the value is elsewhere.
    pub variables: Vec<(String, Expanded)>,
    /// Command and arguments without the program, as written and after expansion; none where a value from elsewhere is
    /// in one.
    pub line: Vec<(String, Expanded)>,
    /// The program; none where the image's own is run.
    pub program: Option<String>,
}

impl Words {
    /// Reads them for a pod on this node; without a node (a template) its name counts as a value from elsewhere.
    pub fn of(container: &Container, node: Option<&str>) -> Self {
        let mut variables: Vec<(String, Expanded)> = Vec::new();
        for (name, value) in &container.env {
            let value = match value {
                Some(value) => expand(value, &variables),
                None if container.node_name_env.contains(name) => node.map(str::to_owned),
                None => None,
            };
            variables.push((name.clone(), value));
        }
        let program = container.command.first().cloned();
        let words = container.command.iter().skip(1).chain(&container.args);
        let line = words.map(|word| (word.clone(), expand(word, &variables))).collect();
        Self { variables, line, program }
    }

    /// A variable: not there, or there with its value or none.
    pub fn variable(&self, name: &str) -> Option<&Expanded> {
        self.variables.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value)
    }
}

fn look_up<'a>(name: &str, variables: &'a [(String, Expanded)]) -> Known<'a> {
    match variables.iter().rev().find(|(key, _)| key == name) {
        Some((_, Some(value))) => Known::Value(value),
        Some((_, None)) => Known::Elsewhere,
        None => Known::Missing,
    }
}

fn expand(text: &str, variables: &[(String, Expanded)]) -> Expanded {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let (before, after) = rest.split_at(at);
        expanded.push_str(before);
        let after = after.get(1..).unwrap_or_default();
        if let Some(next) = after.strip_prefix('$') {
            expanded.push('$');
            rest = next;
        } else if let Some((name, next)) = after.strip_prefix('(').and_then(|inside| inside.split_once(')')) {
            match look_up(name, variables) {
                Known::Value(value) => expanded.push_str(value),
                Known::Elsewhere => return None,
                Known::Missing => {
                    expanded.push_str("$(");
                    expanded.push_str(name);
                    expanded.push(')');
                }
            }
            rest = next;
        } else {
            expanded.push('$');
            rest = after;
        }
    }
    expanded.push_str(rest);
    Some(expanded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_expanded_as_the_kubelet_does() {
        let variables = [
            ("A".to_owned(), Some("1".to_owned())),
            ("A".to_owned(), Some("2".to_owned())),
            ("SECRET".to_owned(), None),
        ];
        let rows = [
            ("plain", Some("plain")),
            ("x$(A)y", Some("x2y")),
            ("$(A)$(A)", Some("22")),
            ("$(NONE)/x", Some("$(NONE)/x")),
            ("$$(A)", Some("$(A)")),
            ("$A $ x", Some("$A $ x")),
            ("$(A", Some("$(A")),
            ("$(SECRET)", None),
            ("é$(A)", Some("é2")),
        ];
        for (text, wanted) in rows {
            assert_eq!(expand(text, &variables).as_deref(), wanted, "{text}");
        }
    }

    #[test]
    fn the_name_of_the_node_is_known_on_a_node_only() {
        let container = Container {
            command: vec!["/usr/bin/kured".into(), "--a=$(KURED_NODE_ID)".into()],
            args: vec!["--b".into()],
            env: vec![("KURED_NODE_ID".into(), None), ("URL".into(), Some("http://$(KURED_NODE_ID)".into()))],
            node_name_env: vec!["KURED_NODE_ID".into()],
            ..Container::default()
        };
        let words = Words::of(&container, Some("worker2"));
        let expanded = |words: &Words| words.line.iter().map(|(_, word)| word.clone()).collect::<Vec<_>>();
        assert_eq!(expanded(&words), [Some("--a=worker2".to_owned()), Some("--b".to_owned())]);
        assert_eq!(words.variable("URL"), Some(&Some("http://worker2".to_owned())));
        assert_eq!(words.program.as_deref(), Some("/usr/bin/kured"));
        let template = Words::of(&container, None);
        assert_eq!(expanded(&template), [None, Some("--b".to_owned())]);
        assert_eq!(template.variable("NONE"), None);
    }
}
