use serde_json::{Value as Json, json};

use super::*;

struct Object<'a>(&'a Json);

impl<'a> Activation<'a> for Object<'a> {
    fn resolve(&self, name: &str) -> Option<Result<Value<'a>, Error>> {
        (name == "object").then(|| Ok(Value::json(self.0, None)))
    }
}

fn environment() -> Environment {
    Environment::default().with("object", Type::Dyn)
}

fn eval(source: &str, object: &Json) -> Result<Json, String> {
    let program = Program::compile(source, &environment())?;
    program
        .evaluate(&Object(object), CALL_LIMIT)
        .result
        .map(|value| value.to_json())
        .map_err(|error| error.to_string())
}

#[test]
fn expressions_have_values() {
    let object = json!({"a": 1, "b": "text", "l": [3, 1, 2], "m": {"x": "1", "y": "2"}, "n": null});
    let cases = [
        "object.a + 1 == 2",
        "object.l.all(x, x > 0) && object.l.exists(x, x == 2) && object.l.exists_one(x, x == 3)",
        "object.l.map(x, x * 2) == [6, 2, 4]",
        "object.l.filter(x, x > 1).size() == 2",
        "object.l.map(x, x > 1, string(x)).join('-') == '3-2'",
        "object.m.all(k, k.size() == 1)",
        "object.m.transformMap(k, v, v + '!')['x'] == '1!'",
        "object.l.transformList(i, v, i + v) == [3, 2, 4]",
        "[5, 4, 6].all(i, v, i + v > 4)",
        "has(object.a) && !has(object.z) && !has(object.n.q)",
        "object.?z.orValue(7) == 7 && object.?m.?x.orValue('') == '1'",
        "object.?a.optMap(v, dyn(v) + 1).orValue(0) == 2",
        "object.l.sort() == [1, 2, 3] && object.l.sortBy(x, -x) == [3, 2, 1]",
        "object.l.sum() == 6 && object.l.min() == 1 && object.l.max() == 3 && !object.l.isSorted()",
        "'%s has %d: %.2f %x'.format(['a', 3, 1.5, 255]) == 'a has 3: 1.50 ff'",
        "'hello'.substring(1, 3) == 'el' && 'a,b'.split(',') == ['a', 'b'] && 'aXa'.replace('a', 'b') == 'bXb'",
        "'abc123'.find('[0-9]+') == '123' && 'a1b2'.findAll('[0-9]') == ['1', '2'] && 'abc'.matches('^a.c$')",
        "quantity('1Gi').isGreaterThan(quantity('1G')) && isQuantity('1.5') && !isQuantity('x')",
        "quantity('1500m').compareTo(quantity('1.5')) == 0 && quantity('2').add(1).asInteger() == 3",
        "ip('10.0.0.1').family() == 4 && cidr('10.0.0.0/8').containsIP('10.2.3.4') && isIP('::1')",
        "url('https://a.b:80/c?d=e').getHostname() == 'a.b' && url('https://a.b/c?d=e').getQuery()['d'] == ['e']",
        "semver('1.2.3').isLessThan(semver('1.10.0')) && isSemver('1.0.0-rc.1') && semver('v1.2', true).minor() == 2",
        "sets.contains([1, 2, 3], [2]) && sets.equivalent([1, 1], [1]) && sets.intersects([1], [1, 2])",
        "timestamp('2024-01-01T00:00:00Z') + duration('1h') > timestamp('2024-01-01T00:30:00Z')",
        "timestamp('2024-02-03T04:05:06Z').getMonth() == 1 && duration('90m').getHours() == 1",
        "!format.dns1123Label().validate('abc').hasValue() && format.dns1123Label().validate('A_').hasValue()",
        "type(object.a) == int && type('') == string && 1 == dyn(1.0) && dyn(1u) == 1",
        "lists.range(3) == [0, 1, 2] && [[1], [2]].flatten() == [1, 2] && [1, 1, 2].distinct() == [1, 2]",
        "{'a': 1, 'b': 2}.b == 2 && 'a' in {'a': 1} && 2 in [1, 2] && [1, 2, 3][1] == 2",
        "true || object.z.q == 1",
        "[1, 0].exists(x, 1 / x > 0)",
        "strings.quote('a\"b') == '\"a\\\\\"b\"' && 'abc'.charAt(1) == 'b' && 'banana'.lastIndexOf('an') == 3",
        "int('42') == 42 && double('1.5') == 1.5 && string(true) == 'true' && bool('true')",
    ];
    for case in cases {
        assert_eq!(eval(case, &object), Ok(json!(true)), "{case}");
    }
}

#[test]
fn errors_of_evaluation_are_the_servers() {
    let object = json!({"a": 1, "l": [1]});
    let cases = [
        ("object.z == 1", "no such key: z"),
        ("object.l[3] == 1", "index out of bounds: 3"),
        ("1 / (object.a - 1) == 1", "division by zero"),
        ("object.a + 'x' == ''", "no such overload"),
        ("int('x') == 1", "type conversion error from 'string' to 'int'"),
        ("9223372036854775807 + object.a == 0", "integer overflow"),
        ("optional.none().value() == 1", "optional.none() dereference"),
        (
            "quantity('x').asInteger() == 1",
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        ("[].min() == 1", "min called on empty list"),
    ];
    for (case, wanted) in cases {
        assert_eq!(eval(case, &object), Err(wanted.to_owned()), "{case}");
    }
}

#[test]
fn what_does_not_compile_is_told_as_the_server_tells_it() {
    let cases = [
        (
            "object.",
            "ERROR: <input>:1:8: Syntax error: no viable alternative at input '.'\n | object.\n | .......^",
        ),
        (
            "foo == 1",
            "ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')\n | foo == 1\n | ^",
        ),
        (
            "1 == 'a'",
            "ERROR: <input>:1:3: found no matching overload for '_==_' applied to '(int, string)'\n | 1 == 'a'\n | ..^",
        ),
        (
            "'a'.size(1)",
            "ERROR: <input>:1:9: found no matching overload for 'size' applied to 'string.(int)'\n | 'a'.size(1)\n | ........^",
        ),
        ("[1, 'a']", "ERROR: <input>:1:5: expected type 'int' but found 'string'\n | [1, 'a']\n | ....^"),
        (
            "'a'.matches('(')",
            "ERROR: <input>:1:13: invalid matches argument\n | 'a'.matches('(')\n | ............^",
        ),
        (
            "'é' == foo",
            "ERROR: <input>:1:8: undeclared reference to 'foo' (in container '')\n | 'é' == foo\n | .．.....^",
        ),
    ];
    for (case, wanted) in cases {
        assert_eq!(Program::compile(case, &environment()).map(|_| ()), Err(wanted.to_owned()), "{case}");
    }
}

#[test]
fn expensive_and_deep_expressions_end() {
    let many: Json = (0..2000).collect::<Vec<i32>>().into();
    let nested = "object.all(a, object.all(b, object.all(c, a + b + c >= 0)))";
    assert_eq!(eval(nested, &many), Err(Error::CostExceeded.to_string()));
    assert_eq!(eval("object.map(x, x).size() == 2000", &many), Ok(json!(true)));
    let deep = format!("{}1{}", "(".repeat(5000), ")".repeat(5000));
    assert!(eval(&deep, &json!(null)).is_err());
    let chain = format!("object{}", ".optMap(x, x)".repeat(60));
    assert!(eval(&chain, &json!(null)).is_err());
    assert!(eval(&"a".repeat(200_000), &json!(null)).is_err());
}

#[test]
fn long_and_nested_expressions_are_parsed_or_refused() {
    for (open, close) in [("(", ")"), ("[", "]"), ("{1: ", "}")] {
        let nested = |depth: usize| format!("{}1{}", open.repeat(depth), close.repeat(depth));
        assert!(Program::compile(&nested(200), &environment()).is_ok());
        assert!(Program::compile(&nested(300), &environment()).is_err());
    }
    let chain = |length: usize| format!("1{}", "+1".repeat(length));
    assert!(Program::compile(&chain(200), &environment()).is_ok());
    assert!(Program::compile(&chain(20_000), &environment()).is_err());
}
