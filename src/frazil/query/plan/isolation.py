"""Isolation: whether a query may be planned and run in this process.

DataFusion can be cancelled between batches, and counts the memory of groups, sorts and joins. Some
work it neither interrupts nor counts: joins that multiply rows, functions that multiply text,
regular expressions that compile to very large automata, plans that grow during planning. Such
queries run in a worker process, which can be killed.

Both checks err on the safe side. `is_plain` looks at the text only: if every count of it is small,
planning is cheap. `isolation_reason` looks at the printed plan and accepts only what is known to
be steady. Golden plans in `tests/query/plan` fail if another DataFusion version prints differently.
"""

from __future__ import annotations

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PLAIN_BYTES_MAX = 64 * 1024
TOP_ROWS_MAX = 100_000
"""Largest n of `ORDER BY ... LIMIT n`: each new row is inserted among n others."""
REGEX_BYTES_MAX = 1024
"""Total length of the regular expressions in a plan."""
REGEX_CLASSES_MAX = 8
"""Backslashes in regular expressions: each `\\w` compiles to some hundred states."""
CONCATENATIONS_MAX = 6
"""Each may double the text: `SELECT x || x FROM (SELECT y || y AS x ...)`."""

_COUNTS_MAX = {
    **dict.fromkeys("(", 256),
    **dict.fromkeys(",", 2048),
    **dict.fromkeys("[:?\\~", 32),
    **dict.fromkeys("+-*/%|&^<>=!#@", 64),
}
"""By character. Planning takes the square or cube of these counts, which is quick up to here."""
_WORDS_MAX = {
    "select": 4,
    "from": 4,
    "union": 3,
    "and": 64,
    "or": 64,
    "when": 32,
    "between": 32,
    "is": 64,
    "not": 64,
    "cast": 32,
    "at": 32,
    "any": 2,
    "all": 3,
    "some": 2,
    "information_schema": 4,
}
_HEAVY = _words(
    "with recursive join cube rollup grouping sets over window lateral unnest values except "
    "intersect exists apply pivot unpivot match_recognize qualify tablesample natural"
)
_WORD = re.compile(r"[a-z_]\w*")

SCALARS = _words(
    "abs acos acosh asin asinh atan atan2 atanh cbrt ceil cos cosh cot degrees exp factorial floor "
    "gcd isnan iszero lcm ln log log10 log2 nanvl pi pow power radians rand random round signum "
    "sin sinh sqrt tan tanh trunc greatest least coalesce ifnull nullif nvl nvl2 "
    "current_date current_time current_timestamp now today date_bin date_part date_trunc datepart "
    "datetrunc date_format from_unixtime make_date to_char to_date to_local_time to_timestamp "
    "to_timestamp_micros to_timestamp_millis to_timestamp_nanos to_timestamp_seconds to_unixtime "
    "ascii bit_length btrim char_length character_length chr contains ends_with find_in_set "
    "initcap instr left length lower ltrim md5 octet_length position regexp_like reverse right "
    "rtrim sha224 sha256 sha384 sha512 split_part starts_with strpos substr substr_index substring "
    "substring_index to_hex trim upper uuid arrow_cast arrow_typeof version "
    "array_element array_has array_length array_contains cardinality element_at empty get_field "
    "list_element list_has list_length map_entries map_extract map_keys map_values named_struct "
    "struct row matches get_json_object"
)
"""Functions whose cost and result grow at most linearly with their arguments."""
AGGREGATES = _words(
    "any_value approx_distinct approx_median approx_percentile_cont "
    "approx_percentile_cont_with_weight array_agg avg bit_and bit_or bit_xor bool_and bool_or corr "
    "count covar covar_pop covar_samp first_value last_value max mean median min percentile_cont "
    "quantile_cont regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx "
    "regr_sxy regr_syy stddev stddev_pop stddev_samp sum var var_pop var_population var_samp "
    "var_sample"
)
"""Aggregates whose memory DataFusion counts."""

_STEADY_NODES = _words(
    "Projection Filter Aggregate Sort Limit TableScan SubqueryAlias Distinct EmptyRelation Union "
    "Subquery Explain Analyze DescribeTable"
)
_NODE = re.compile(r"^\s*(\w+)")
_CALL = re.compile(r"\b([a-z]\w*)\(")
_TOP = re.compile(r"^\s*Sort: .* fetch=(\d+)$", re.MULTILINE)
_GROUPINGS = re.compile(r"\b(?:CUBE|ROLLUP|GROUPING SETS)\b")
_REGEX = re.compile(r" !?~\*? | SIMILAR TO |regexp")
_MODEST = re.compile(r' (?:!?~\*?|SIMILAR TO) Utf8(?:View)?\("[^"{]*"\)')
"""A literal pattern without a counted repetition."""


def is_plain(text: str, tables: frozenset[str]) -> bool:
    """Return whether a text is cheap to plan. `tables` are the names of all tables and views."""
    if len(text) > PLAIN_BYTES_MAX:
        return False
    if any(text.count(sign) > most for sign, most in _COUNTS_MAX.items()):
        return False
    scans = 0
    left = dict(_WORDS_MAX)
    for word in _WORD.findall(text.lower()):
        if word in _HEAVY:
            return False
        scans += word in tables
        if word in left:
            left[word] -= 1
            if left[word] < 0:
                return False
    return scans <= _WORDS_MAX["from"] * 2


def isolation_reason(plan: str) -> str | None:
    """Return why a printed plan must run in a worker process; None if it may run in this one."""
    for line in plan.splitlines():
        node = _NODE.match(line)
        if node is None or node[1] not in _STEADY_NODES:
            return f"{line.strip().partition(':')[0][:40]!r} may multiply rows"
    for name in _CALL.findall(plan):
        if name not in SCALARS and name not in AGGREGATES:
            return f"{name[:40]} may take long or produce large values"
    if any(int(count) > TOP_ROWS_MAX for count in _TOP.findall(plan)):
        return "it keeps many rows sorted"
    if _GROUPINGS.search(plan):
        return "it has many grouping sets"
    if plan.count(" || ") > CONCATENATIONS_MAX:
        return "it concatenates text many times"
    if _REGEX.search(plan) and not _is_modest(plan):
        return "its regular expression may take long"
    return None


def _is_modest(plan: str) -> bool:
    """Return whether every regular expression in a plan compiles to a small automaton."""
    patterns = "".join(_MODEST.findall(plan))
    has_others = _REGEX.search(_MODEST.sub("", plan)) is not None
    is_small = len(patterns) <= REGEX_BYTES_MAX and patterns.count("\\") <= REGEX_CLASSES_MAX
    return is_small and not has_others
