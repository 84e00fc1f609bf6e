//! Kubernetes' CEL: expressions over API objects, for the rules of definitions and for admission policies.
//!
//! An expression is compiled against declared variables ([`Program::compile`]) and evaluated over JSON
//! ([`Program::evaluate`]), with all functions of Kubernetes' libraries. What is wrong with one is told in the
//! words of the real server, `ERROR: <input>:1:8: Syntax error: …` included; what it costs, estimated and in
//! fact, is counted as the real server counts, and evaluation stops where the limit is.
//!
//! The syntax comes from the `cel` crate, whose parser is made from the grammar of the real server's library, so
//! that its syntax errors are the same to the letter. The rest is here: that crate has no type checker and no
//! estimates, its evaluation cannot be stopped, and it wants data copied into values of its own, where here JSON
//! is read in place. `kube-cel` adds functions to an older version of it and has the same limits.

mod authorizer;
mod change;
mod check;
mod cost;
mod declared;
mod eval;
mod expr;
mod functions;
mod overloads;
mod source;
mod ty;
mod unify;
mod value;

use std::collections::BTreeMap;
use std::fmt;

pub use authorizer::{Answer, Authorize, Authorizer, Question};
pub use change::Made;
pub use declared::{Declared, DeclaredField, Elements, MAX_REQUEST, escape};
pub use ty::{AUTHORIZER, ObjectType, RESOURCE_CHECK, Type};
pub use value::Value;

use check::Checked;
use expr::Expr;
use source::{Issues, Parsed};

/// What one expression may cost.
pub const CALL_LIMIT: u64 = 1_000_000;
/// What all expressions of one check may cost together.
pub const BUDGET: i64 = 10_000_000;
/// What all conditions of one policy or webhook may cost together.
pub const CONDITIONS_BUDGET: i64 = 2_500_000;
/// How deep brackets and signs of an expression may be nested; the parser's work grows with more than that.
const DEEPEST: usize = 250;
/// How long a message may be that an expression makes.
pub const MAX_MESSAGE: usize = 5 * 1024;

/// The variables that an expression can use.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    variables: BTreeMap<Box<str>, Type>,
    changes: bool,
}

impl Environment {
    /// With one more variable; its name may have dots.
    #[must_use]
    pub fn with(mut self, name: &str, ty: Type) -> Self {
        self.variables.insert(name.into(), ty);
        self
    }

    /// Where expressions may make `Object{…}` and `JSONPatch{…}`, what a policy does to an object.
    #[must_use]
    pub fn with_changes(mut self) -> Self {
        self.changes = true;
        self
    }
}

/// The values of the variables.
pub trait Activation<'a> {
    /// The value of a variable, if there is one.
    fn resolve(&self, name: &str) -> Option<Result<Value<'a>, Error>>;
}

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// Something went wrong.
    Message(Box<str>),
    /// It became too expensive.
    CostExceeded,
}

impl Error {
    /// An error with a message.
    pub fn new(message: impl Into<String>) -> Self {
        Self::Message(message.into().into_boxed_str())
    }

    fn overload() -> Self {
        Self::new("no such overload")
    }
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Message(message) => message,
            Self::CostExceeded => "operation cancelled: actual cost limit exceeded",
        })
    }
}

/// A compiled expression.
#[derive(Debug)]
pub struct Program {
    root: Expr,
    checked: Checked,
}

/// What came of an evaluation.
#[derive(Debug)]
pub struct Evaluation<'a> {
    /// The value.
    pub result: Result<Value<'a>, Error>,
    /// What it cost.
    pub cost: u64,
}

impl Program {
    /// Compiles an expression.
    ///
    /// # Errors
    /// What is wrong with it, as the server shows it.
    pub fn compile(source: &str, environment: &Environment) -> Result<Self, String> {
        if nesting(source) > DEEPEST {
            return Err(format!("ERROR: <input>:-1:0: expression recursion limit exceeded: {DEEPEST}"));
        }
        let Parsed { mut root, places } = source::parse(source).map_err(Issues::text)?;
        let mut issues = Issues::new(source);
        let checked = check::check(&mut root, &places, environment, &mut issues);
        if issues.is_empty() { Ok(Self { root, checked }) } else { Err(issues.text()) }
    }

    /// The type of its value.
    #[must_use]
    pub fn output(&self) -> &Type {
        self.checked.ty(&self.root)
    }

    /// Whether it uses a variable.
    #[must_use]
    pub fn uses(&self, name: &str) -> bool {
        self.root.uses(name)
    }

    /// What it costs at most, if its variables are of a type.
    #[must_use]
    pub fn max_cost(&self, sizes: Option<&Declared>) -> u64 {
        cost::estimate(&self.root, &self.checked, sizes).1
    }

    /// Evaluates it, up to a cost.
    #[must_use]
    pub fn evaluate<'a>(&self, activation: &dyn Activation<'a>, limit: u64) -> Evaluation<'a> {
        let mut evaluator = eval::Evaluator::new(self, activation, limit);
        let result = evaluator.eval(&self.root);
        Evaluation { result, cost: evaluator.cost }
    }
}

/// The deepest nesting of brackets, or the longest run of signs, whatever stands in quotes included.
fn nesting(source: &str) -> usize {
    let (mut deepest, mut open, mut signs) = (0, 0_usize, 0);
    for byte in source.bytes() {
        match byte {
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        signs = if matches!(byte, b'!' | b'-') { signs + 1 } else { 0 };
        deepest = deepest.max(open).max(signs);
    }
    deepest
}

#[cfg(test)]
mod tests;
