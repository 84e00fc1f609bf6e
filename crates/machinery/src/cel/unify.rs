//! Which types go together, and what type parameters stand for.

use super::ty::Type;

/// What type parameters stand for, as far as it is known.
#[derive(Default)]
pub(super) struct Mapping {
    known: Vec<Option<Type>>,
    /// What to undo when an attempt fails.
    log: Vec<(u32, Option<Type>)>,
}

impl Mapping {
    /// A new parameter.
    pub(super) fn fresh(&mut self) -> Type {
        self.known.push(None);
        Type::Param(u32::try_from(self.known.len() - 1).unwrap_or(u32::MAX))
    }

    fn find(&self, id: u32) -> Option<&Type> {
        self.known.get(id as usize)?.as_ref()
    }

    fn set(&mut self, id: u32, ty: Type) {
        if let Some(slot) = self.known.get_mut(id as usize) {
            let old = slot.replace(ty);
            self.log.push((id, old));
        }
    }

    /// Whether one type can be given where another is wanted. What that tells about parameters is kept only if so.
    pub(super) fn assignable(&mut self, one: &Type, two: &Type) -> bool {
        self.attempt(|mapping| mapping.assign(one, two))
    }

    /// As [`Self::assignable`], for lists of arguments.
    pub(super) fn all_assignable(&mut self, ones: &[Type], twos: &[Type]) -> bool {
        ones.len() == twos.len()
            && self.attempt(|mapping| ones.iter().zip(twos).all(|(one, two)| mapping.assign(one, two)))
    }

    fn attempt(&mut self, test: impl FnOnce(&mut Self) -> bool) -> bool {
        self.log.clear();
        let good = test(self);
        if !good {
            while let Some((id, old)) = self.log.pop() {
                self.known[id as usize] = old;
            }
        }
        good
    }

    fn assign(&mut self, one: &Type, two: &Type) -> bool {
        if let Type::Param(id) = two {
            let (valid, known) = self.substitution(one, *id);
            if valid || known {
                return valid;
            }
        }
        if let Type::Param(id) = one {
            return self.substitution(two, *id).0;
        }
        if one.is_dyn_or_error() || two.is_dyn_or_error() {
            return true;
        }
        match (one, two) {
            (Type::Null, other) | (other, Type::Null) => other.is_nullable(),
            (Type::Type(_), Type::Type(_)) => true,
            (Type::List(one), Type::List(two)) | (Type::Optional(one), Type::Optional(two)) => {
                self.assign(one, two)
            }
            (Type::Map(one), Type::Map(two)) => self.assign(&one.0, &two.0) && self.assign(&one.1, &two.1),
            (one, two) => one == two,
        }
    }

    /// Whether a parameter can stand for a type, and whether it already stood for one.
    fn substitution(&mut self, ty: &Type, id: u32) -> (bool, bool) {
        if *ty == Type::Param(id) {
            return (true, true);
        }
        if let Some(known) = self.find(id).cloned() {
            if *ty == known {
                return (true, true);
            }
            if self.assign(ty, &known) {
                let general = most_general(ty, &known);
                if self.not_in(id, &general) {
                    self.set(id, general);
                }
                return (true, true);
            }
            return (false, true);
        }
        if self.not_in(id, ty) {
            self.set(id, ty.clone());
            return (true, false);
        }
        (false, false)
    }

    /// Whether a parameter does not occur in a type.
    fn not_in(&self, id: u32, within: &Type) -> bool {
        match within {
            Type::Param(other) if *other == id => false,
            Type::Param(other) => self.find(*other).is_none_or(|known| self.not_in(id, known)),
            Type::List(of) | Type::Optional(of) | Type::Type(Some(of)) => self.not_in(id, of),
            Type::Map(of) => self.not_in(id, &of.0) && self.not_in(id, &of.1),
            _ => true,
        }
    }

    /// A type with its parameters replaced; those that stand for nothing by `dyn`, if `finally`.
    pub(super) fn substitute(&self, ty: &Type, finally: bool) -> Type {
        match ty {
            Type::Param(id) => match self.find(*id) {
                Some(known) => self.substitute(known, finally),
                None if finally => Type::Dyn,
                None => ty.clone(),
            },
            Type::List(of) => Type::list(self.substitute(of, finally)),
            Type::Optional(of) => Type::optional(self.substitute(of, finally)),
            Type::Map(of) => Type::map(self.substitute(&of.0, finally), self.substitute(&of.1, finally)),
            Type::Type(Some(of)) => Type::Type(Some(Box::new(self.substitute(of, finally)))),
            other => other.clone(),
        }
    }
}

/// A type of a signature with its own parameters replaced by new ones.
pub(super) fn instantiate(ty: &Type, fresh: &[Type]) -> Type {
    match ty {
        Type::Param(id) => fresh.get(*id as usize).cloned().unwrap_or(Type::Dyn),
        Type::List(of) => Type::list(instantiate(of, fresh)),
        Type::Optional(of) => Type::optional(instantiate(of, fresh)),
        Type::Map(of) => Type::map(instantiate(&of.0, fresh), instantiate(&of.1, fresh)),
        Type::Type(Some(of)) => Type::Type(Some(Box::new(instantiate(of, fresh)))),
        other => other.clone(),
    }
}

/// The more general of two types that go together.
pub(super) fn most_general(one: &Type, two: &Type) -> Type {
    if less_specific(one, two) { one.clone() } else { two.clone() }
}

fn less_specific(one: &Type, two: &Type) -> bool {
    match (one, two) {
        (Type::Dyn | Type::Param(_), _) => true,
        (_, Type::Dyn | Type::Param(_)) => false,
        (Type::List(one), Type::List(two)) | (Type::Optional(one), Type::Optional(two)) => {
            less_specific(one, two)
        }
        (Type::Map(one), Type::Map(two)) => less_specific(&one.0, &two.0) && less_specific(&one.1, &two.1),
        (Type::Type(_), Type::Type(_)) => true,
        (one, two) => one == two,
    }
}
