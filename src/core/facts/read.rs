//! Typed reading of one JSON object, with the path of whatever is wrong.
//!
//! Missing and `null` mean the same to Kubernetes' own decoders ("not set"), so [`Fields::optional_bool`] and its
//! like answer `None` for both; a wrong type is always an error. What an unset field means is written where the
//! kind is decoded, with its source, never here.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::Malformed;

/// One object inside a document, and where it is.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    object: &'a str,
    path: String,
    map: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    /// The document's root; `object` names it in errors.
    ///
    /// # Errors
    /// If the value is no object.
    pub fn root(object: &'a str, value: &'a Value) -> Result<Self, Malformed> {
        Self::of(object, String::new(), value)
    }

    fn of(object: &'a str, path: String, value: &'a Value) -> Result<Self, Malformed> {
        match value {
            Value::Object(map) => Ok(Self { object, path, map }),
            other => Err(Malformed { object: object.to_owned(), path, problem: wrong(other, "an object") }),
        }
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// An error at `key`, for checks that the typed readers do not cover.
    #[must_use]
    pub fn malformed(&self, key: &str, problem: impl Into<String>) -> Malformed {
        Malformed { object: self.object.to_owned(), path: self.path_of(key), problem: problem.into() }
    }

    /// All of it, as a type that reads itself.
    ///
    /// # Errors
    /// If it does not fit.
    pub fn whole<T: Deserialize<'a>>(&self) -> Result<T, Malformed> {
        T::deserialize(self.map).map_err(|error| self.malformed("(whole object)", error.to_string()))
    }

    fn get(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    fn typed<T>(
        &self,
        key: &str,
        wanted: &str,
        take: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, Malformed> {
        match self.get(key) {
            None => Ok(None),
            Some(value) => take(value).map(Some).ok_or_else(|| self.malformed(key, wrong(value, wanted))),
        }
    }

    fn required<T>(&self, key: &str, read: Result<Option<T>, Malformed>) -> Result<T, Malformed> {
        read?.ok_or_else(|| {
            let problem = if self.map.contains_key(key) { "is null" } else { "is missing" };
            self.malformed(key, problem)
        })
    }

    /// Text, or not set.
    ///
    /// # Errors
    /// If it is there with another type; the same holds for all readers below.
    pub fn optional_str(&self, key: &str) -> Result<Option<&'a str>, Malformed> {
        self.typed(key, "text", Value::as_str)
    }

    /// Text that must be there.
    ///
    /// # Errors
    /// If it is missing, null or of another type; the same holds for every `required` and plain reader below.
    pub fn str(&self, key: &str) -> Result<&'a str, Malformed> {
        self.required(key, self.optional_str(key))
    }

    /// A boolean, or not set.
    pub fn optional_bool(&self, key: &str) -> Result<Option<bool>, Malformed> {
        self.typed(key, "true or false", Value::as_bool)
    }

    /// A boolean that must be there.
    pub fn bool(&self, key: &str) -> Result<bool, Malformed> {
        self.required(key, self.optional_bool(key))
    }

    /// A whole number, or not set.
    pub fn optional_i64(&self, key: &str) -> Result<Option<i64>, Malformed> {
        self.typed(key, "a whole number", Value::as_i64)
    }

    /// A whole number that must be there.
    pub fn i64(&self, key: &str) -> Result<i64, Malformed> {
        self.required(key, self.optional_i64(key))
    }

    /// An RFC 3339 time, or not set. Longhorn writes `""` for "not set": that counts as not set too.
    pub fn optional_time(&self, key: &str) -> Result<Option<Timestamp>, Malformed> {
        match self.optional_str(key)? {
            None | Some("") => Ok(None),
            Some(text) => text
                .parse()
                .map(Some)
                .map_err(|_| self.malformed(key, format!("is `{text}`, wanted a time like 2026-01-31T23:59:59Z"))),
        }
    }

    /// An object, or not set.
    pub fn optional_object(&self, key: &str) -> Result<Option<Fields<'a>>, Malformed> {
        self.get(key).map(|value| Self::of(self.object, self.path_of(key), value)).transpose()
    }

    /// An object that must be there.
    pub fn object(&self, key: &str) -> Result<Fields<'a>, Malformed> {
        self.required(key, self.optional_object(key))
    }

    /// A whole number or text, as `IntOrString` fields are, in words; or not set.
    pub fn optional_number_or_text(&self, key: &str) -> Result<Option<String>, Malformed> {
        let text =
            |value: &Value| value.as_i64().map(|number| number.to_string()).or(value.as_str().map(str::to_owned));
        self.typed(key, "a whole number or text", text)
    }

    /// A list of objects; not set (`null` too, as EndpointSlices without endpoints have it) is the empty list.
    pub fn objects(&self, key: &str) -> Result<Vec<Fields<'a>>, Malformed> {
        let list = self.typed(key, "a list", Value::as_array)?;
        list.into_iter()
            .flatten()
            .enumerate()
            .map(|(index, value)| Self::of(self.object, format!("{}[{index}]", self.path_of(key)), value))
            .collect()
    }

    /// A list of texts; not set is the empty list.
    pub fn strings(&self, key: &str) -> Result<Vec<String>, Malformed> {
        let list = self.typed(key, "a list", Value::as_array)?;
        list.into_iter()
            .flatten()
            .map(|value| value.as_str().map(str::to_owned).ok_or_else(|| self.malformed(key, wrong(value, "text"))))
            .collect()
    }

    /// A map of texts, such as labels; not set is the empty map.
    pub fn string_map(&self, key: &str) -> Result<BTreeMap<String, String>, Malformed> {
        let Some(map) = self.typed(key, "an object", Value::as_object)? else { return Ok(BTreeMap::new()) };
        map.iter()
            .map(|(name, value)| match value.as_str() {
                Some(text) => Ok((name.clone(), text.to_owned())),
                None => Err(self.malformed(&format!("{key}.{name}"), wrong(value, "text"))),
            })
            .collect()
    }

    /// The members of this object, which must all be objects, in key order.
    pub fn all_members(&self) -> Result<Vec<(&'a str, Fields<'a>)>, Malformed> {
        let one = |(name, value): (&'a String, &'a Value)| {
            Ok((name.as_str(), Self::of(self.object, self.path_of(name), value)?))
        };
        self.map.iter().map(one).collect()
    }

    /// The members of an object whose values are objects, in key order; not set is the empty list.
    pub fn members(&self, key: &str) -> Result<Vec<(&'a str, Fields<'a>)>, Malformed> {
        let Some(map) = self.typed(key, "an object", Value::as_object)? else { return Ok(Vec::new()) };
        let path = self.path_of(key);
        map.iter()
            .map(|(name, value)| Ok((name.as_str(), Self::of(self.object, format!("{path}.{name}"), value)?)))
            .collect()
    }
}

fn wrong(value: &Value, wanted: &str) -> String {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    format!("is {found}, wanted {wanted}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn missing_null_and_odd_types_are_told_apart() {
        let document = json!({"spec": {"null": null, "text": "x", "flag": false}});
        let root = Fields::root("Node a", &document).expect("an object");
        let spec = root.object("spec").expect("there");
        assert_eq!(spec.optional_bool("flag"), Ok(Some(false)));
        assert_eq!(spec.optional_bool("missing"), Ok(None));
        assert_eq!(spec.optional_bool("null"), Ok(None));
        for (key, problem) in
            [("missing", "is missing"), ("null", "is null"), ("text", "is text, wanted true or false")]
        {
            let error = spec.bool(key).expect_err(key);
            assert_eq!((error.path.as_str(), error.problem.as_str()), (format!("spec.{key}").as_str(), problem));
        }
    }
}
