//! Annotations: which there are, and where each may stand.
//! Not here: what `@nullable` (`types`), `@Backing`, `@Descriptor`, `@FixedSize` and `@RustDerive` (`emit`) do.

use crate::error::Fault;
use crate::tree::Note;

/// The place of an annotation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Place {
    /// Before a declaration.
    Declaration,
    /// Before a type, or a member, which begins with its type.
    Use,
    Anywhere,
}

/// Every annotation that is taken. Those without an effect here change other languages' code, or what tools check.
const KNOWN: [(&str, Place); 26] = [
    ("nullable", Place::Use),
    ("utf8InCpp", Place::Use),
    ("Backing", Place::Declaration),
    ("Descriptor", Place::Declaration),
    ("FixedSize", Place::Declaration),
    ("RustDerive", Place::Declaration),
    ("JavaDelegator", Place::Declaration),
    ("JavaDerive", Place::Declaration),
    ("JavaOnlyImmutable", Place::Declaration),
    ("JavaOnlyStableParcelable", Place::Declaration),
    ("NdkOnlyStableParcelable", Place::Declaration),
    ("RustOnlyStableParcelable", Place::Declaration),
    ("VintfStability", Place::Declaration),
    ("Deprecated", Place::Anywhere),
    ("EnforcePermission", Place::Anywhere),
    ("Hide", Place::Anywhere),
    ("JavaDefault", Place::Anywhere),
    ("JavaPassthrough", Place::Anywhere),
    ("JavaSuppressLint", Place::Anywhere),
    ("PermissionManuallyEnforced", Place::Anywhere),
    ("PropagateAllowBlocking", Place::Anywhere),
    ("RequiresNoPermission", Place::Anywhere),
    ("SuppressWarnings", Place::Anywhere),
    ("SystemApi", Place::Anywhere),
    ("TestApi", Place::Anywhere),
    ("UnsupportedAppUsage", Place::Anywhere),
];

/// The annotation of this name.
pub(crate) fn find<'n>(notes: &'n [Note], name: &str) -> Option<&'n Note> {
    notes.iter().find(|note| note.name.text.strip_prefix('@') == Some(name))
}

/// Checks that all are known and may stand here.
///
/// # Errors
/// One is not, or may not.
pub(crate) fn check(notes: &[Note], place: Place) -> Result<(), Fault> {
    for note in notes {
        let name = &note.name.text;
        let fault =
            |what: &str, remedy: &str| Err(Fault::new(note.name.at, format!("`{name}` {what}"), remedy));
        if name == "@SensitiveData" {
            return fault(
                "is not kept: nobody clears what was sent",
                "remove it if the data may stay in memory",
            );
        }
        match KNOWN.iter().find(|(known, _)| name.strip_prefix('@') == Some(*known)) {
            None => return fault("is an annotation that is not known", "remove it, or mend its name"),
            Some((_, wanted)) if *wanted != place && *wanted != Place::Anywhere => {
                return match wanted {
                    Place::Declaration => fault("belongs to a declaration", "put it in front of one"),
                    _ => fault("belongs to the type of a member", "put it in front of one"),
                };
            }
            Some(_) => {}
        }
    }
    Ok(())
}
