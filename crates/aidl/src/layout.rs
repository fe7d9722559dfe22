//! Types that contain themselves, are too large or cannot be copied, found from the fields of all.

use crate::error::Fault;
use crate::program::{Program, TypeId};
use crate::tree::Kind;
use crate::types::{Base, Shape, Ty};

/// The types of all fields, by the number of their type. A field whose type is wrong has none.
pub(crate) type Fields = Vec<Vec<Option<Ty>>>;

/// The structures among a type's fields, with how each is held.
fn structures(fields: &Fields, id: TypeId) -> impl Iterator<Item = (TypeId, &Ty)> {
    fields[id].iter().flatten().filter_map(|ty| match ty.base {
        Base::Declared(id, Kind::Parcelable | Kind::Union) => Some((id, ty)),
        _ => None,
    })
}

/// True, by type, where a descriptor is somewhere inside: such a value is not copied and equals no other.
pub(crate) fn with_descriptors(fields: &Fields) -> Vec<bool> {
    let is_descriptor = |ty: &Ty| matches!(ty.base, Base::Descriptor | Base::ParcelDescriptor);
    let mut found: Vec<bool> = fields.iter().map(|each| each.iter().flatten().any(is_descriptor)).collect();
    loop {
        let new: Vec<TypeId> = (0..fields.len())
            .filter(|id| !found[*id] && structures(fields, *id).any(|(inner, _)| found[inner]))
            .collect();
        if new.is_empty() {
            return found;
        }
        new.into_iter().for_each(|id| found[id] = true);
    }
}

/// The bytes of each type's values, at most. Types that hold no other are taken out, again and again.
///
/// # Errors
/// A type contains itself without an array or a box between.
pub(crate) fn sizes(program: &Program, fields: &Fields) -> Result<Vec<usize>, Fault> {
    let mut sizes = vec![0; fields.len()];
    let mut left: Vec<TypeId> = (0..fields.len()).collect();
    let holds = |left: &[TypeId], id: TypeId| {
        structures(fields, id)
            .any(|(inner, ty)| ty.shape != Shape::List && !ty.heap && left.binary_search(&inner).is_ok())
    };
    while !left.is_empty() {
        let (still, gone): (Vec<TypeId>, Vec<TypeId>) = left.iter().partition(|id| holds(&left, **id));
        for id in &gone {
            let each = fields[*id].iter().flatten().map(|ty| size(ty, &sizes));
            sizes[*id] = match program.types[*id].item.kind {
                Kind::Union => each.max().unwrap_or(0).saturating_add(8),
                _ => each.fold(0, usize::saturating_add),
            };
        }
        if gone.is_empty() {
            let what =
                format!("`{}` contains itself, or another type that does", program.types[left[0]].full);
            let remedy = "write `@nullable(heap=true)` in front of the field, or make it an array";
            return Err(Fault::new(program.at(left[0]), what, remedy));
        }
        left = still;
    }
    Ok(sizes)
}

/// The bytes of a value, at most, where `sizes` has those of declared types.
pub(crate) fn size(ty: &Ty, sizes: &[usize]) -> usize {
    let one = match ty.base {
        Base::Void => 0,
        Base::Bool | Base::Byte => 1,
        Base::Char => 2,
        Base::Int | Base::Float => 4,
        Base::Long | Base::Double | Base::Declared(_, Kind::Enumeration) => 8,
        Base::Declared(id, Kind::Parcelable | Kind::Union) => sizes[id],
        _ => 24,
    };
    match &ty.shape {
        _ if ty.heap => 8,
        Shape::One => one,
        Shape::List => 24,
        Shape::Fixed(sizes) => sizes.iter().fold(one, |all, size| all.saturating_mul(*size)),
    }
}
