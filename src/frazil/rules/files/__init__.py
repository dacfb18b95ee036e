"""rules/files: rule files, as Prometheus has them, and more strictly checked.

model.py       RuleFile, RuleGroup, AlertRule, RecordingRule
yaml_values.py YAML as mappings, lists and texts, with the line of each
reader.py      text to a RuleFile; errors name file, group and rule
sources.py     RuleFiles: the files of a node, and whether they have changed
"""
