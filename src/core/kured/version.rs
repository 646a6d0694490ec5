//! The version of kured, as far as its image's tag tells.
//!
//! Between versions the order of a tick, the reading of the environment and the keeping of the lock differ. A tag is only
//! a name that somebody gave: one that is not exactly a release number (`latest`, a branch, a build of one's own) tells
//! nothing, and neither does a digest by itself. A mirror's repository with a release number is believed.

use std::fmt;

/// A release of kured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// 1 so far.
    pub major: u32,
    /// Minor.
    pub minor: u32,
    /// Patch.
    pub patch: u32,
}

impl Version {
    /// From here on `KURED_<FLAG>` beats the command line; before, it only fills in what that leaves out.
    pub const ENVIRONMENT_WINS: Self = Self::of(1, 16, 2);
    /// The first with `--concurrency` (kured#660).
    pub const MULTI: Self = Self::of(1, 14, 0);
    /// The newest whose source was read; later ones may differ.
    pub const NEWEST_READ: Self = Self::of(1, 23, 0);

    /// A version.
    #[must_use]
    pub const fn of(major: u32, minor: u32, patch: u32) -> Self {
        Self { major, minor, patch }
    }

    /// 1.13.0 to 1.13.2 take the lock before they ask: a node that is told no keeps it (kured#792, #819).
    #[must_use]
    pub fn locks_before_it_asks(self) -> bool {
        (self.major, self.minor) == (1, 13)
    }

    /// 1.14.0 to 1.16.1 forget, in the format of several holders, that a node was cordoned, and always uncordon it.
    #[must_use]
    pub fn multi_always_uncordons(self) -> bool {
        self >= Self::MULTI && self < Self::ENVIRONMENT_WINS
    }

    /// The second generation of kured is another program.
    #[must_use]
    pub const fn is_first_generation(self) -> bool {
        self.major == 1
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// An image that does not tell its version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("image `{image}` does not tell its version: {why}")]
pub struct UnknownVersion {
    /// The image.
    pub image: String,
    /// Why not.
    pub why: &'static str,
}

/// The version of an image.
///
/// # Errors
/// If its tag is no release number, or there is none.
pub fn of_image(image: &str) -> Result<Version, UnknownVersion> {
    let unknown = |why| UnknownVersion { image: image.to_owned(), why };
    let (name, digest) = image.split_once('@').map_or((image, false), |(name, _)| (name, true));
    // A colon before the last slash belongs to the registry's port.
    let last = name.rsplit('/').next().unwrap_or(name);
    let Some((_, tag)) = last.split_once(':') else {
        return Err(unknown(if digest { "it is named by its digest alone" } else { "it has no tag" }));
    };
    let release = tag.strip_prefix('v').unwrap_or(tag);
    let mut numbers = release.split('.').map(number);
    let (Some(Some(major)), Some(Some(minor)), Some(Some(patch)), None) =
        (numbers.next(), numbers.next(), numbers.next(), numbers.next())
    else {
        return Err(unknown("its tag is no release number such as 1.23.0"));
    };
    Ok(Version { major, minor, patch })
}

fn number(text: &str) -> Option<u32> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_number_is_told_from_everything_else() {
        let rows: [(&str, Result<&str, &str>); 12] = [
            ("ghcr.io/kubereboot/kured:1.23.0", Ok("1.23.0")),
            ("docker.io/weaveworks/kured:1.9.2", Ok("1.9.2")),
            ("registry.local:5000/mirror/kured:v1.14.0", Ok("1.14.0")),
            ("ghcr.io/kubereboot/kured:1.20.0@sha256:00", Ok("1.20.0")),
            ("ghcr.io/kubereboot/kured@sha256:00", Err("by its digest alone")),
            ("registry.local:5000/kured", Err("it has no tag")),
            ("kured:latest", Err("no release number")),
            ("kured:main-5102ccb", Err("no release number")),
            ("kured:1.20", Err("no release number")),
            ("kured:1.20.0-r1", Err("no release number")),
            ("kured:1.20.0.1", Err("no release number")),
            ("", Err("it has no tag")),
        ];
        for (image, wanted) in rows {
            match (of_image(image), wanted) {
                (Ok(found), Ok(version)) => assert_eq!(found.to_string(), version, "{image}"),
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{image}: {error}"),
                (found, _) => panic!("{image}: {found:?}"),
            }
        }
    }

    #[test]
    fn what_differs_between_versions() {
        let rows = [
            ((1, 12, 2), (false, false)),
            ((1, 13, 0), (true, false)),
            ((1, 13, 2), (true, false)),
            ((1, 14, 0), (false, true)),
            ((1, 16, 1), (false, true)),
            ((1, 16, 2), (false, false)),
            ((1, 23, 0), (false, false)),
        ];
        for ((major, minor, patch), wanted) in rows {
            let version = Version::of(major, minor, patch);
            assert_eq!((version.locks_before_it_asks(), version.multi_always_uncordons()), wanted, "{version}");
        }
    }
}
