"""languages/promql: PromQL, evaluated over sorted points by compiled functions.

    text -> parser -> evaluator: selectors read points -> grids of series x steps -> answer

    points.py       PointSource, PointSet: series with their points, in columns
    evaluate.py     at one time, or at the steps of a range; what a query will read
    answer.py       Answer: a grid, points, a scalar or a text
    failures.py     errors of queries that parse but cannot be answered

    tokens.py       tokens with their positions
    syntax.py       the syntax tree
    syntax_json.py  the syntax tree as JSON
    parser.py       from the tree of promql-parser to ours

    evaluator.py    Evaluator: the value of each expression
    evaluation.py   Evaluation: steps, limits, what has been read
    notes.py        warnings and infos
    vectors.py      Vector, Ranges: the values of an expression
    labels.py       what operators keep of labels
    numbers.py      numbers as texts

    selectors.py        from points to the value of each step, or the points it sees
    range_windows.py    RangeWindows: the points that each step sees
    rate_functions.py   rate, increase, delta, irate, idelta
    range_functions.py  all functions of ranges, by name
    functions.py        mathematics, dates, numbers of histograms
    label_functions.py  label_replace, label_join, absent, sorting
    aggregations.py     sum, topk, count_values...
    operators.py        operators on two values
    binary.py           operators between vectors, with matching
    classic_histograms.py  histogram_quantile and histogram_fraction

    histogram.py         NativeHistogram: one point of a native histogram
    histogram_sums.py    sums, differences, counter resets
    histogram_values.py  quantiles, fractions, trimming
    histogram_text.py    a histogram as the value of a label

    kernels/        compiled loops
    warm_promql.py  compiles them ahead of the first query

Series keep the names of their metrics until the end of an evaluation, where those that are no
longer of the metric lose them: Prometheus' "delayed name removal".
"""
