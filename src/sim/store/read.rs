//! Lists: selectors, pages, and reads of an earlier revision.

use std::sync::Arc;

use serde_json::{Value, json};

use super::error::Refusal;
use super::kinds::Kind;
use super::select::{Fields, Labels};
use super::{Objects, Store};

/// What a list asks for.
#[derive(Debug, Clone, Default)]
pub struct ListOptions {
    /// `labelSelector`
    pub labels: Labels,
    /// `fieldSelector`
    pub fields: Fields,
    /// `limit`; 0 is none.
    pub limit: usize,
    /// `continue`
    pub token: Option<String>,
    /// The state of this revision instead of the newest.
    pub at: Option<u64>,
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Listing {
    /// `metadata.resourceVersion`
    pub revision: u64,
    /// The objects.
    pub items: Vec<Arc<Value>>,
    /// `metadata.continue`
    pub token: Option<String>,
    /// `metadata.remainingItemCount`; not told with selectors.
    pub remaining: Option<usize>,
}

impl Store {
    /// Lists objects; an empty namespace means all.
    ///
    /// # Errors
    /// 410 for a revision that is forgotten, 504 for one that is not there yet, 400 for a bad token.
    pub fn list(&self, kind: &Kind, namespace: &str, options: &ListOptions) -> Result<Listing, Refusal> {
        let (at, start) = match &options.token {
            None => (options.at, None),
            Some(token) => {
                let (revision, place) = parse_token(token)?;
                (Some(revision), Some(place))
            }
        };
        let revision = at.unwrap_or(self.revision);
        if revision > self.revision {
            return Err(too_large(revision, self.revision));
        }
        let past;
        let empty = Objects::new();
        let objects = if revision == self.revision {
            self.objects.get(&kind.stored_as()).unwrap_or(&empty)
        } else {
            past = self.objects_at(kind, revision)?;
            &past
        };
        let wanted = |(place, object): &(&(String, String), &Arc<Value>)| {
            (namespace.is_empty() || place.0 == namespace)
                && start.as_ref().is_none_or(|start| *place > start)
                && options.labels.matches(object)
                && options.fields.matches(object)
        };
        let mut items = Vec::new();
        let (mut last, mut remaining) = (None, 0usize);
        for (place, object) in objects.iter().filter(wanted) {
            if options.limit > 0 && items.len() == options.limit {
                remaining += 1;
                continue;
            }
            last = Some(place);
            items.push(Arc::clone(object));
        }
        let token = last.filter(|_| remaining > 0).map(|(ns, name)| format!("{revision}_{ns}_{name}"));
        let told = remaining > 0 && options.labels.is_empty() && options.fields.is_empty();
        Ok(Listing { revision, items, token, remaining: told.then_some(remaining) })
    }

    /// The objects of a kind as they were at a revision: newer changes undone, newest first.
    fn objects_at(&self, kind: &Kind, revision: u64) -> Result<Objects, Refusal> {
        if revision < self.oldest {
            return Err(Refusal::expired(revision, self.oldest));
        }
        let resource = kind.stored_as();
        let mut objects = self.objects.get(&resource).cloned().unwrap_or_default();
        for change in self.history.range(self.first_after(revision)..).rev() {
            if change.key.resource == resource {
                let place = (change.key.namespace.clone(), change.key.name.clone());
                match &change.before {
                    Some(before) => objects.insert(place, Arc::clone(before)),
                    None => objects.remove(&place),
                };
            }
        }
        Ok(objects)
    }

    /// One object as it was at a revision, or as it is.
    ///
    /// # Errors
    /// 404; 410 for a revision that is forgotten.
    pub fn get(&self, kind: &Kind, namespace: &str, name: &str, at: Option<u64>) -> Result<Arc<Value>, Refusal> {
        let place = (namespace.to_owned(), name.to_owned());
        let found = match at {
            Some(revision) if revision < self.revision => self.objects_at(kind, revision)?.get(&place).cloned(),
            _ => self.objects.get(&kind.stored_as()).and_then(|objects| objects.get(&place)).cloned(),
        };
        found.ok_or_else(|| Refusal::not_found(kind, name))
    }
}

fn parse_token(token: &str) -> Result<(u64, (String, String)), Refusal> {
    let mut parts = token.splitn(3, '_');
    let revision = parts.next().and_then(|text| text.parse().ok());
    match (revision, parts.next(), parts.next()) {
        (Some(revision), Some(namespace), Some(name)) => Ok((revision, (namespace.to_owned(), name.to_owned()))),
        _ => Err(Refusal::bad_request("continue key is not valid: illegal base64 data at input byte 0")),
    }
}

fn too_large(asked: u64, current: u64) -> Refusal {
    let mut refusal =
        Refusal::new(504, "Timeout", format!("Timeout: Too large resource version: {asked}, current: {current}"));
    if let Refusal::Status { details, .. } = &mut refusal {
        details.insert(
            "causes".to_owned(),
            json!([{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]),
        );
        details.insert("retryAfterSeconds".to_owned(), json!(1));
    }
    refusal
}
