//! A policy, compiled, and its evaluation.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use windlass_machinery::cel::{
    AUTHORIZER, Activation, Answer, Authorize, Authorizer, BUDGET, CALL_LIMIT, CONDITIONS_BUDGET,
    Environment, Error, MAX_MESSAGE, ObjectType, Program, Question, RESOURCE_CHECK, Type, Value,
};

use super::super::super::auth::{Attributes, ResourceTarget, Target, User};
use super::super::{Admission, Operation, matching};

const EXHAUSTED: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// A compiled policy.
#[derive(Debug)]
pub(super) struct Policy {
    conditions: Vec<Expression>,
    variables: Vec<(Box<str>, Expression)>,
    validations: Vec<Validation>,
    mutations: Vec<Mutation>,
    ignores_errors: bool,
}

/// How an object is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// By an object that is merged into it.
    Merge,
    /// By the steps of a JSON patch.
    Steps,
}

impl Change {
    /// The ways, with the field that has the expression and the type that it must have.
    pub(super) const ALL: [(&str, &str, &str, Self); 2] = [
        ("ApplyConfiguration", "applyConfiguration", "Object", Self::Merge),
        ("JSONPatch", "jsonPatch", "list(JSONPatch)", Self::Steps),
    ];
}

#[derive(Debug)]
struct Mutation {
    change: Change,
    expression: Expression,
}

#[derive(Debug)]
struct Validation {
    expression: Expression,
    message: Box<str>,
    message_expression: Option<Expression>,
    reason: Box<str>,
}

/// An expression, and what it compiles to.
#[derive(Debug)]
struct Expression {
    text: Box<str>,
    program: Result<Program, String>,
}

impl Expression {
    fn compile(text: &str, environment: &Environment) -> Self {
        Self { text: text.into(), program: Program::compile(text, environment) }
    }
}

/// That a write is to be refused.
pub(super) struct Verdict {
    pub(super) message: String,
    pub(super) reason: String,
}

/// The variables of a policy's expressions.
pub(super) fn environment(params: bool, authorizer: bool) -> Environment {
    let kind = |last| {
        Type::object(
            "kubernetes.GroupVersionKind",
            ["group", "version", last].map(|name| (name, Type::String)),
        )
    };
    let resource = Type::object(
        "kubernetes.GroupVersionResource",
        ["group", "version", "resource"].map(|name| (name, Type::String)),
    );
    let texts = || Type::list(Type::String);
    let user = Type::object(
        "kubernetes.UserInfo",
        [
            ("username", Type::String),
            ("uid", Type::String),
            ("groups", texts()),
            ("extra", Type::map(Type::String, texts())),
        ],
    );
    let request = Type::object(
        "kubernetes.AdmissionRequest",
        [
            ("kind", kind("kind")),
            ("resource", resource.clone()),
            ("subResource", Type::String),
            ("requestKind", kind("kind")),
            ("requestResource", resource),
            ("requestSubResource", Type::String),
            ("name", Type::String),
            ("namespace", Type::String),
            ("operation", Type::String),
            ("userInfo", user),
            ("dryRun", Type::Bool),
            ("options", Type::Dyn),
        ],
    );
    let mut out = Environment::default()
        .with("object", Type::Dyn)
        .with("oldObject", Type::Dyn)
        .with("namespaceObject", namespace_type())
        .with("request", request);
    if params {
        out = out.with("params", Type::Dyn);
    }
    if authorizer {
        out = out.with("authorizer", AUTHORIZER).with("authorizer.requestResource", RESOURCE_CHECK);
    }
    out
}

fn namespace_type() -> Type {
    let map = || Type::map(Type::String, Type::String);
    let condition = Type::object(
        "kubernetes.NamespaceCondition",
        [
            ("status", Type::String),
            ("type", Type::String),
            ("lastTransitionTime", Type::Timestamp),
            ("message", Type::String),
            ("reason", Type::String),
        ],
    );
    let metadata = Type::object(
        "kubernetes.NamespaceMetadata",
        [
            ("name", Type::String),
            ("generateName", Type::String),
            ("namespace", Type::String),
            ("labels", map()),
            ("annotations", map()),
            ("UID", Type::String),
            ("creationTimestamp", Type::Timestamp),
            ("deletionGracePeriodSeconds", Type::Int),
            ("deletionTimestamp", Type::Timestamp),
            ("generation", Type::Int),
            ("resourceVersion", Type::String),
            ("finalizers", Type::list(Type::String)),
        ],
    );
    let spec = Type::object("kubernetes.NamespaceSpec", [("finalizers", Type::list(Type::String))]);
    let status = Type::object(
        "kubernetes.NamespaceStatus",
        [("conditions", Type::list(condition)), ("phase", Type::String)],
    );
    Type::object("kubernetes.Namespace", [("metadata", metadata), ("spec", spec), ("status", status)])
}

/// An environment with one more of a policy's own variables.
pub(super) fn declare(environment: Environment, known: &[(Box<str>, Type)]) -> Environment {
    let fields = known.iter().cloned().collect();
    let all = Type::Object(Arc::new(ObjectType { name: "kubernetes.variables".into(), fields, open: false }));
    known.iter().fold(environment.with("variables", all), |out, (name, ty)| {
        out.with(&format!("variables.{name}"), ty.clone())
    })
}

impl Policy {
    pub(super) fn compile(spec: &Json) -> Self {
        let list = |field: &str| spec[field].as_array().map(Vec::as_slice).unwrap_or_default();
        let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
        let params = !spec["paramKind"].is_null();
        let mut variables = Vec::new();
        let mut known: Vec<(Box<str>, Type)> = Vec::new();
        for variable in list("variables") {
            let environment = declare(environment(params, true), &known);
            let expression = Expression::compile(&text(&variable["expression"]), &environment);
            let name: Box<str> = text(&variable["name"]).into();
            let ty = expression.program.as_ref().map_or(Type::Dyn, |program| program.output().clone());
            known.push((name.clone(), ty));
            variables.push((name, expression));
        }
        let full = declare(environment(params, true), &known);
        let plain = declare(environment(params, false), &known);
        let validation = |one: &Json| {
            let message = text(&one["messageExpression"]);
            Validation {
                expression: Expression::compile(&text(&one["expression"]), &full),
                message: text(&one["message"]).trim().into(),
                message_expression: (!message.is_empty()).then(|| Expression::compile(&message, &plain)),
                reason: text(&one["reason"]).into(),
            }
        };
        let conditions = environment(params, true);
        let changes = declare(environment(params, true).with_changes(), &known);
        let mutation = |one: &Json| {
            let known = Change::ALL.iter().find(|(name, ..)| one["patchType"] == *name);
            known.map(|(_, field, _, change)| Mutation {
                change: *change,
                expression: Expression::compile(&text(&one[field]["expression"]), &changes),
            })
        };
        Self {
            conditions: list("matchConditions")
                .iter()
                .map(|one| Expression::compile(text(&one["expression"]).trim(), &conditions))
                .collect(),
            variables,
            validations: list("validations").iter().map(validation).collect(),
            mutations: list("mutations").iter().filter_map(mutation).collect(),
            ignores_errors: spec["failurePolicy"] == "Ignore",
        }
    }

    /// How many changes the policy makes.
    pub(super) fn mutations(&self) -> usize {
        self.mutations.len()
    }

    /// Whether it is about a write.
    ///
    /// # Errors
    /// When that cannot be decided.
    pub(super) fn concerns(
        &self,
        admission: &Admission<'_>,
        object: &Json,
        params: Option<&Json>,
    ) -> Result<bool, String> {
        let data = Data::new(admission, object, params);
        Scope::new(self, &data).conditions()
    }

    /// What one of its changes is to do to the object: an object to merge into it, or a JSON patch.
    ///
    /// # Errors
    /// When its expression has no value, or none that says what to do.
    pub(super) fn mutation(
        &self,
        index: usize,
        admission: &Admission<'_>,
        object: &Json,
        params: Option<&Json>,
    ) -> Result<(Change, Json), String> {
        let Some(Mutation { change, expression }) = self.mutations.get(index) else {
            return Ok((Change::Steps, json!([])));
        };
        let data = Data::new(admission, object, params);
        let value = Scope::new(self, &data).value(expression, &mut BUDGET.clone())?;
        let mismatch = |why: String| format!("type mismatch: {why}");
        let told = match (&value, change) {
            (Value::Made(made), Change::Merge) => {
                made.check_names().map_err(mismatch)?;
                made.to_json()
            }
            (Value::List(steps), Change::Steps) => {
                let steps = steps.items().map(|step| match step {
                    Value::Made(step) => {
                        if let Some(Value::Made(made)) = step.field("value") {
                            made.check_names().map_err(mismatch)?;
                        }
                        let mut step = step.to_json();
                        for field in ["op", "path"] {
                            if step[field].is_null() {
                                step[field] = "".into();
                            }
                        }
                        Ok(step)
                    }
                    other => Err(mismatch(format!(
                        "JSONPatchType.expression should evaluate to array of JSONPatch: {}",
                        other.type_name()
                    ))),
                });
                steps.collect::<Result<Vec<Json>, String>>()?.into()
            }
            (other, _) => return Err(mismatch(other.type_name().to_owned())),
        };
        Ok((*change, told))
    }

    /// What the policy has against a write.
    pub(super) fn evaluate(
        &self,
        admission: &Admission<'_>,
        object: &Json,
        params: Option<&Json>,
    ) -> Vec<Verdict> {
        let data = Data::new(admission, object, params);
        let scope = Scope::new(self, &data);
        let failed = |message: String| {
            if self.ignores_errors { Vec::new() } else { vec![Verdict { message, reason: String::new() }] }
        };
        match scope.conditions() {
            Ok(true) => {}
            Ok(false) => return Vec::new(),
            Err(why) => return failed(why),
        }
        let mut budget = BUDGET;
        let mut out = Vec::new();
        for validation in &self.validations {
            match scope.value(&validation.expression, &mut budget) {
                Ok(Value::Bool(true)) => {}
                Ok(_) => {
                    let message = scope.message(validation, &mut budget);
                    let reason = if validation.reason.is_empty() { "Invalid" } else { &*validation.reason };
                    out.push(Verdict { message, reason: reason.to_owned() });
                }
                Err(error) => out.extend(failed(error)),
            }
        }
        out
    }
}

/// What expressions see of a write.
struct Data<'a> {
    object: Json,
    old: Json,
    request: Json,
    namespace: Json,
    params: Json,
    authorizer: Asker<'a>,
    question: Question,
}

impl<'a> Data<'a> {
    fn new(admission: &'a Admission<'a>, object: &Json, params: Option<&Json>) -> Self {
        let resource = admission.resource;
        let typed = |object: &Json| {
            let mut object = admission.seen(object);
            let kind = admission.kind(resource);
            object["apiVersion"] = json!(kind.api_version());
            object["kind"] = json!(kind.kind);
            object
        };
        let deleted = admission.operation == Operation::Delete;
        let new = if deleted { Json::Null } else { typed(object) };
        let old = admission.old.map_or(Json::Null, typed);
        let data = Self::of(admission, new, old, admission.request(object, resource));
        Self { params: params.cloned().unwrap_or_default(), ..data }
    }

    fn of(admission: &'a Admission<'a>, object: Json, old: Json, request: Json) -> Self {
        let resource = admission.resource;
        let name = request["name"].as_str().unwrap_or_default().to_owned();
        Self {
            object,
            old,
            request,
            namespace: matching::namespace(admission).unwrap_or_default(),
            params: Json::Null,
            authorizer: Asker { admission },
            question: Question {
                group: resource.group.clone(),
                resource: resource.plural.clone(),
                subresource: admission.subresource.unwrap_or_default().to_owned(),
                namespace: admission.namespace.to_owned(),
                name,
                ..Question::default()
            },
        }
    }
}

/// The variables, and what those of the policy itself came to.
struct Scope<'d> {
    policy: &'d Policy,
    data: &'d Data<'d>,
    authorizer: &'d Asker<'d>,
    known: RefCell<HashMap<Box<str>, Result<Value<'d>, Error>>>,
    /// What its variables cost.
    cost: Cell<u64>,
}

/// The match conditions of a webhook, compiled.
#[derive(Debug)]
pub(in super::super) struct Conditions(Policy);

impl Conditions {
    /// Compiles `matchConditions`.
    pub(in super::super) fn compile(spec: &Json) -> Self {
        Self(Policy::compile(spec))
    }

    /// Whether they all hold.
    ///
    /// # Errors
    /// When that cannot be decided.
    pub(in super::super) fn holds(
        &self,
        admission: &Admission<'_>,
        object: Json,
        old: Json,
        request: Json,
    ) -> Result<bool, String> {
        let data = Data::of(admission, object, old, request);
        let scope = Scope::new(&self.0, &data);
        scope.conditions()
    }
}

impl<'d> Scope<'d> {
    fn new(policy: &'d Policy, data: &'d Data<'d>) -> Self {
        Self { policy, data, authorizer: &data.authorizer, known: RefCell::default(), cost: Cell::new(0) }
    }

    /// Whether all conditions hold. One that does not makes the errors of others irrelevant.
    fn conditions(&self) -> Result<bool, String> {
        let mut budget = CONDITIONS_BUDGET;
        let mut errors = Vec::new();
        for condition in &self.policy.conditions {
            match self.value(condition, &mut budget) {
                Ok(Value::Bool(true)) => {}
                Ok(_) => return Ok(false),
                Err(error) => errors.push(error),
            }
        }
        match errors.as_slice() {
            [] => Ok(true),
            [one] => Err(one.clone()),
            many => Err(format!("[{}]", many.join(", "))),
        }
    }

    /// The value of an expression, or why there is none.
    fn value(&self, expression: &Expression, budget: &mut i64) -> Result<Value<'d>, String> {
        let program = expression
            .program
            .as_ref()
            .map_err(|issues| format!("compilation error: compilation failed: {issues}"))?;
        if *budget < 0 {
            return Err(EXHAUSTED.to_owned());
        }
        let evaluation = program.evaluate(self, CALL_LIMIT);
        let cost = evaluation.cost.saturating_add(self.cost.take());
        *budget = budget.saturating_sub(i64::try_from(cost).unwrap_or(i64::MAX));
        if *budget < 0 {
            return Err(EXHAUSTED.to_owned());
        }
        let text = &expression.text;
        evaluation.result.map_err(|error| format!("expression '{text}' resulted in error: {error}"))
    }

    fn message(&self, validation: &Validation, budget: &mut i64) -> String {
        if let Some(expression) = &validation.message_expression
            && let Ok(Value::String(text)) = self.value(expression, budget)
        {
            let text = text.trim();
            if !text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n') {
                return text.to_owned();
            }
        }
        match &*validation.message {
            "" => format!("failed expression: {}", validation.expression.text.trim()),
            message => message.to_owned(),
        }
    }

    fn variable(&self, name: &str) -> Option<Result<Value<'d>, Error>> {
        if let Some(known) = self.known.borrow().get(name) {
            return Some(known.clone());
        }
        let (key, expression) = self.policy.variables.iter().find(|(known, _)| **known == *name)?;
        let failed =
            |why: String| Error::new(format!("composited variable {name:?} fails to evaluate: {why}"));
        let result = match &expression.program {
            Ok(program) => {
                let evaluation = program.evaluate(self, CALL_LIMIT);
                self.cost.set(self.cost.get().saturating_add(evaluation.cost));
                evaluation.result.map_err(|error| failed(error.to_string()))
            }
            Err(issues) => Err(failed(format!("compilation failed: {issues}"))),
        };
        self.known.borrow_mut().insert(key.clone(), result.clone());
        Some(result)
    }
}

impl<'d> Activation<'d> for Scope<'d> {
    fn resolve(&self, name: &str) -> Option<Result<Value<'d>, Error>> {
        let json = |value: &'d Json| Some(Ok(Value::json(value, None)));
        match name {
            "object" => json(&self.data.object),
            "oldObject" => json(&self.data.old),
            "request" => json(&self.data.request),
            "namespaceObject" => json(&self.data.namespace),
            "params" => json(&self.data.params),
            "authorizer" => Some(Ok(Authorizer::value(self.authorizer))),
            "authorizer.requestResource" => {
                Some(Ok(Authorizer::resource(self.authorizer, self.data.question.clone())))
            }
            _ => self.variable(name.strip_prefix("variables.")?),
        }
    }
}

/// Answers what the writer, or a service account, may do.
struct Asker<'a> {
    admission: &'a Admission<'a>,
}

impl Authorize for Asker<'_> {
    fn authorize(&self, question: &Question) -> Answer {
        let account;
        let user = match &question.account {
            Some((namespace, name)) => {
                account = User::service_account(namespace, name);
                &account
            }
            None => self.admission.user,
        };
        let target = match &question.path {
            Some(path) => Target::Path(path),
            None => Target::Resource(ResourceTarget {
                group: &question.group,
                resource: &question.resource,
                subresource: &question.subresource,
                namespace: &question.namespace,
                name: &question.name,
            }),
        };
        let wanted = Attributes { verb: &question.verb, target };
        let decision = self.admission.server.auth.decide(user, &wanted);
        Answer { allowed: decision.is_allowed(), ..Answer::default() }
    }
}
