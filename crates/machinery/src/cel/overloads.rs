//! The functions of expressions: the standard ones and those of Kubernetes' libraries, with their signatures.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::ty::Type;

/// One way of calling a function.
#[derive(Debug)]
pub(super) struct Overload {
    /// What tells it from others; costs go by it.
    pub(super) id: Box<str>,
    /// Whether the first argument stands before the dot.
    pub(super) member: bool,
    pub(super) args: Vec<Type>,
    pub(super) result: Type,
    /// How many type parameters there are.
    pub(super) params: usize,
}

/// All ways of calling a function.
pub(super) fn of(function: &str) -> Option<&'static [Overload]> {
    OVERLOADS.get(function).map(Vec::as_slice)
}

static OVERLOADS: LazyLock<HashMap<Box<str>, Vec<Overload>>> = LazyLock::new(|| {
    let mut out: HashMap<Box<str>, Vec<Overload>> = HashMap::new();
    let mut add = |line: &str| {
        if let Some((name, overload)) = parse(line) {
            out.entry(name).or_default().push(overload);
        }
    };
    TABLE.lines().map(str::trim).filter(|line| !line.is_empty()).for_each(&mut add);
    comparisons().iter().for_each(|line| add(line));
    per_type().iter().for_each(|line| add(line));
    out
});

/// `id name receiver args result`, with `-` for none.
fn parse(line: &str) -> Option<(Box<str>, Overload)> {
    let mut words = line.split_whitespace();
    let (id, name, receiver, args, result) =
        (words.next()?, words.next()?, words.next()?, words.next()?, words.next()?);
    let mut types = Vec::new();
    if receiver != "-" {
        types.push(Type::parse(receiver)?);
    }
    if args != "-" {
        for arg in split(args) {
            types.push(Type::parse(arg)?);
        }
    }
    let has = |letter: &str| line.split_whitespace().skip(2).any(|word| word.contains(letter));
    let params = usize::from(has("A")) + usize::from(has("B"));
    let overload = Overload {
        id: id.into(),
        member: receiver != "-",
        args: types,
        result: Type::parse(result)?,
        params,
    };
    Some((name.into(), overload))
}

/// Splits at the commas that are in no parentheses.
fn split(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut out) = (0, 0, Vec::new());
    for (index, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                out.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    out.push(&text[start..]);
    out
}

fn comparisons() -> Vec<String> {
    const PAIRS: [(&str, &str, &str); 14] = [
        ("bool", "bool", "bool"),
        ("int64", "int", "int"),
        ("int64_double", "int", "double"),
        ("int64_uint64", "int", "uint"),
        ("uint64", "uint", "uint"),
        ("uint64_double", "uint", "double"),
        ("uint64_int64", "uint", "int"),
        ("double", "double", "double"),
        ("double_int64", "double", "int"),
        ("double_uint64", "double", "uint"),
        ("string", "string", "string"),
        ("bytes", "bytes", "bytes"),
        ("timestamp", "timestamp", "timestamp"),
        ("duration", "duration", "duration"),
    ];
    let operators =
        [("less", "_<_"), ("less_equals", "_<=_"), ("greater", "_>_"), ("greater_equals", "_>=_")];
    let lines = operators.into_iter().flat_map(|(word, operator)| {
        PAIRS.into_iter().map(move |(id, one, two)| format!("{word}_{id} {operator} - {one},{two} bool"))
    });
    lines.collect()
}

fn per_type() -> Vec<String> {
    let comparable = ["int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes"];
    let mut out = Vec::new();
    for ty in comparable {
        out.push(format!("list_{ty}_is_sorted_bool isSorted list({ty}) - bool"));
        out.push(format!("list_{ty}_max_{ty} max list({ty}) - {ty}"));
        out.push(format!("list_{ty}_min_{ty} min list({ty}) - {ty}"));
        out.push(format!("list_{ty}_sort sort list({ty}) - list({ty})"));
        out.push(format!("list_{ty}_sortByAssociatedKeys @sortByAssociatedKeys list(A) list({ty}) list(A)"));
    }
    for ty in ["int", "uint", "double", "duration"] {
        out.push(format!("list_{ty}_sum_{ty} sum list({ty}) - {ty}"));
    }
    let times = [
        ("getFullYear", "year"),
        ("getMonth", "month"),
        ("getDayOfYear", "day_of_year"),
        ("getDayOfMonth", "day_of_month"),
        ("getDate", "day_of_month_1_based"),
        ("getDayOfWeek", "day_of_week"),
        ("getHours", "hours"),
        ("getMinutes", "minutes"),
        ("getSeconds", "seconds"),
        ("getMilliseconds", "milliseconds"),
    ];
    for (function, part) in times {
        out.push(format!("timestamp_to_{part} {function} timestamp - int"));
        out.push(format!("timestamp_to_{part}_with_tz {function} timestamp string int"));
        if matches!(part, "hours" | "minutes" | "seconds" | "milliseconds") {
            out.push(format!("duration_to_{part} {function} duration - int"));
        }
    }
    out
}

const TABLE: &str = "
conditional _?_:_ - bool,A,A A
logical_and _&&_ - bool,bool bool
logical_or _||_ - bool,bool bool
logical_not !_ - bool bool
not_strictly_false @not_strictly_false - bool bool
equals _==_ - A,A bool
not_equals _!=_ - A,A bool
add_bytes _+_ - bytes,bytes bytes
add_double _+_ - double,double double
add_duration_duration _+_ - duration,duration duration
add_duration_timestamp _+_ - duration,timestamp timestamp
add_timestamp_duration _+_ - timestamp,duration timestamp
add_int64 _+_ - int,int int
add_list _+_ - list(A),list(A) list(A)
add_string _+_ - string,string string
add_uint64 _+_ - uint,uint uint
divide_double _/_ - double,double double
divide_int64 _/_ - int,int int
divide_uint64 _/_ - uint,uint uint
modulo_int64 _%_ - int,int int
modulo_uint64 _%_ - uint,uint uint
multiply_double _*_ - double,double double
multiply_int64 _*_ - int,int int
multiply_uint64 _*_ - uint,uint uint
negate_double -_ - double double
negate_int64 -_ - int int
subtract_double _-_ - double,double double
subtract_duration_duration _-_ - duration,duration duration
subtract_int64 _-_ - int,int int
subtract_timestamp_duration _-_ - timestamp,duration timestamp
subtract_timestamp_timestamp _-_ - timestamp,timestamp duration
subtract_uint64 _-_ - uint,uint uint
index_list _[_] - list(A),int A
index_map _[_] - map(A,B),A B
optional_list_index_int _[_] - optional(list(A)),int optional(A)
optional_map_index_value _[_] - optional(map(A,B)),A optional(B)
list_optindex_optional_int _[?_] - list(A),int optional(A)
optional_list_optindex_optional_int _[?_] - optional(list(A)),int optional(A)
map_optindex_optional_value _[?_] - map(A,B),A optional(B)
optional_map_optindex_optional_value _[?_] - optional(map(A,B)),A optional(B)
in_list @in - A,list(A) bool
in_map @in - A,map(A,B) bool
size_bytes size - bytes int
bytes_size size bytes - int
size_list size - list(A) int
list_size size list(A) - int
size_map size - map(A,B) int
map_size size map(A,B) - int
size_string size - string int
string_size size string - int
type type - A type(A)
bool_to_bool bool - bool bool
string_to_bool bool - string bool
bytes_to_bytes bytes - bytes bytes
string_to_bytes bytes - string bytes
double_to_double double - double double
int64_to_double double - int double
string_to_double double - string double
uint64_to_double double - uint double
duration_to_duration duration - duration duration
int64_to_duration duration - int duration
string_to_duration duration - string duration
dyn dyn - A dyn
int64_to_int64 int - int int
double_to_int64 int - double int
duration_to_int64 int - duration int
string_to_int64 int - string int
timestamp_to_int64 int - timestamp int
uint64_to_int64 int - uint int
string_to_string string - string string
bool_to_string string - bool string
bytes_to_string string - bytes string
double_to_string string - double string
duration_to_string string - duration string
int64_to_string string - int string
timestamp_to_string string - timestamp string
uint64_to_string string - uint string
ip_to_string string - ip string
cidr_to_string string - cidr string
timestamp_to_timestamp timestamp - timestamp timestamp
int64_to_timestamp timestamp - int timestamp
string_to_timestamp timestamp - string timestamp
uint64_to_uint64 uint - uint uint
double_to_uint64 uint - double uint
int64_to_uint64 uint - int uint
string_to_uint64 uint - string uint
contains_string contains string string bool
ends_with_string endsWith string string bool
starts_with_string startsWith string string bool
matches matches - string,string bool
matches_string matches string string bool
string_jsonpatch_escapeKey_string jsonpatch.escapeKey - string string
string_char_at_int charAt string int string
list_a_index_of_int indexOf list(A) A int
string_index_of_string indexOf string string int
string_index_of_string_int indexOf string string,int int
list_a_last_index_of_int lastIndexOf list(A) A int
string_last_index_of_string lastIndexOf string string int
string_last_index_of_string_int lastIndexOf string string,int int
string_lower_ascii lowerAscii string - string
string_upper_ascii upperAscii string - string
string_trim trim string - string
string_replace_string_string replace string string,string string
string_replace_string_string_int replace string string,string,int string
string_split_string split string string list(string)
string_split_string_int split string string,int list(string)
string_substring_int substring string int string
string_substring_int_int substring string int,int string
string_format format string list(dyn) string
strings_quote strings.quote - string string
list_join join list(string) - string
list_join_string join list(string) string string
list_sets_contains_list sets.contains - list(A),list(A) bool
list_sets_equivalent_list sets.equivalent - list(A),list(A) bool
list_sets_intersects_list sets.intersects - list(A),list(A) bool
list_slice slice list(A) int,int list(A)
list_flatten flatten list(list(A)) - list(A)
list_flatten_int flatten list(dyn) int list(dyn)
lists_range lists.range - int list(int)
list_reverse reverse list(A) - list(A)
list_distinct distinct list(A) - list(A)
list_first first list(A) - optional(A)
list_last last list(A) - optional(A)
@mapInsert_map_key_value cel.@mapInsert - map(A,B),A,B map(A,B)
@mapInsert_map_map cel.@mapInsert - map(A,B),map(A,B) map(A,B)
optional_of optional.of - A optional(A)
optional_ofNonZeroValue optional.ofNonZeroValue - A optional(A)
optional_none optional.none - - optional(A)
optional_value value optional(A) - A
optional_hasValue hasValue optional(A) - bool
optional_or_optional or optional(A) optional(A) optional(A)
optional_orValue_value orValue optional(A) A A
optional_unwrap optional.unwrap - list(optional(A)) list(A)
optional_unwrapOpt unwrapOpt list(optional(A)) - list(A)
string_find_string find string string string
string_find_all_string findAll string string list(string)
string_find_all_string_int findAll string string,int list(string)
string_to_url url - string url
url_get_scheme getScheme url - string
url_get_host getHost url - string
url_get_hostname getHostname url - string
url_get_port getPort url - string
url_get_escaped_path getEscapedPath url - string
url_get_query getQuery url - map(string,list(string))
is_url_string isURL - string bool
string_to_quantity quantity - string quantity
is_quantity_string isQuantity - string bool
quantity_sign sign - quantity int
quantity_is_greater_than isGreaterThan quantity quantity bool
quantity_is_less_than isLessThan quantity quantity bool
quantity_compare_to compareTo quantity quantity int
quantity_get_float asApproximateFloat quantity - double
quantity_get_int asInteger quantity - int
quantity_is_integer isInteger quantity - bool
quantity_add add quantity quantity quantity
quantity_add_int add quantity int quantity
quantity_sub sub quantity quantity quantity
quantity_sub_int sub quantity int quantity
string_to_ip ip - string ip
cidr_ip ip cidr - ip
ip_family family ip - int
ip_is_canonical ip.isCanonical - string bool
ip_is_unspecified isUnspecified ip - bool
ip_is_loopback isLoopback ip - bool
ip_is_link_local_multicast isLinkLocalMulticast ip - bool
ip_is_link_local_unicast isLinkLocalUnicast ip - bool
ip_is_global_unicast isGlobalUnicast ip - bool
is_ip isIP - string bool
string_to_cidr cidr - string cidr
cidr_contains_ip_string containsIP cidr string bool
cidr_contains_ip_ip containsIP cidr ip bool
cidr_contains_cidr_string containsCIDR cidr string bool
cidr_contains_cidr containsCIDR cidr cidr bool
cidr_prefix_length prefixLength cidr - int
cidr_masked masked cidr - cidr
is_cidr isCIDR - string bool
format-validate validate format string optional(list(string))
format-named format.named - string optional(format)
format.dns1123Label format.dns1123Label - - format
format.dns1123Subdomain format.dns1123Subdomain - - format
format.dns1035Label format.dns1035Label - - format
format.qualifiedName format.qualifiedName - - format
format.dns1123LabelPrefix format.dns1123LabelPrefix - - format
format.dns1123SubdomainPrefix format.dns1123SubdomainPrefix - - format
format.dns1035LabelPrefix format.dns1035LabelPrefix - - format
format.labelValue format.labelValue - - format
format.uri format.uri - - format
format.uuid format.uuid - - format
format.byte format.byte - - format
format.date format.date - - format
format.datetime format.datetime - - format
string_to_semver semver - string semver
string_bool_to_semver semver - string,bool semver
is_semver_string isSemver - string bool
is_semver_string_bool isSemver - string,bool bool
semver_is_greater_than isGreaterThan semver semver bool
semver_is_less_than isLessThan semver semver bool
semver_compare_to compareTo semver semver int
semver_major major semver - int
semver_minor minor semver - int
semver_patch patch semver - int
authorizer_path path authorizer string pathcheck
authorizer_group group authorizer string groupcheck
authorizer_serviceaccount serviceAccount authorizer string,string authorizer
groupcheck_resource resource groupcheck string resourcecheck
resourcecheck_subresource subresource resourcecheck string resourcecheck
resourcecheck_namespace namespace resourcecheck string resourcecheck
resourcecheck_name name resourcecheck string resourcecheck
pathcheck_check check pathcheck string decision
resourcecheck_check check resourcecheck string decision
authorizer_fieldselector fieldSelector resourcecheck string resourcecheck
authorizer_labelselector labelSelector resourcecheck string resourcecheck
decision_errored errored decision - bool
decision_error error decision - string
decision_allowed allowed decision - bool
decision_reason reason decision - string
";
