"""Completion for bash, zsh and fish, written from what the parser understands."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from frazil.cli.commands.completion import Flag, Verb


def _bash(verbs: Sequence[Verb]) -> str:
    words, values, bare = [], [], []
    for verb in verbs:
        names = " ".join(name for flag in verb.flags for name in flag.names)
        words.append(f"    {verb.name}) words={shlex.quote(names)} ;;")
        for flag in verb.flags:
            how = _bash_values(flag)
            if flag.names and flag.takes_value:
                pattern = "|".join(shlex.quote(f"{verb.name} {name}") for name in flag.names)
                values.append(f"    {pattern}) {how or 'return'} ;;")
            elif not flag.names and how:
                bare.append(f"    {verb.name}) {how} ;;")
    names = " ".join(verb.name for verb in verbs)
    return f"""\
# bash completion of frazil
_frazil() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}"
  local verb="" words="" place
  COMPREPLY=()
  for ((place = 1; place < COMP_CWORD; place++)); do
    if [[ "${{COMP_WORDS[place]}}" != -* ]]; then verb="${{COMP_WORDS[place]}}"; break; fi
  done
  if [[ -z "$verb" ]]; then
    mapfile -t COMPREPLY < <(compgen -W {shlex.quote(names + " --help --version")} -- "$current")
    return
  fi
  case "$verb $previous" in
{_joined(values)}
  esac
  if [[ "$current" != -* ]]; then
    case "$verb" in
{_joined(bare)}
    esac
  fi
  case "$verb" in
{_joined(words)}
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}}
complete -F _frazil frazil
"""


def _bash_values(flag: Flag) -> str:
    """What completes the value of a flag; nothing where nobody knows."""
    if flag.choices:
        made = f"-W {shlex.quote(' '.join(flag.choices))}"
    elif flag.is_folder:
        made = "-d"
    elif flag.is_file:
        made = "-f"
    else:
        return ""
    names = "" if flag.choices else "compopt -o filenames 2>/dev/null; "
    return f'{names}mapfile -t COMPREPLY < <(compgen {made} -- "$current"); return'


def _zsh(verbs: Sequence[Verb]) -> str:
    listed = "\n".join(f"    {_zsh_quoted(f'{v.name}:{v.help}')}" for v in verbs)
    cases = []
    for verb in verbs:
        specs = " ".join(_zsh_spec(flag) for flag in verb.flags)
        cases.append(f"        {verb.name}) _arguments {specs} ;;")
    return f"""\
#compdef frazil
_frazil() {{
  local state
  local -a verbs
  verbs=(
{listed}
  )
  _arguments -C '1:verb:->verb' '*::argument:->arguments'
  case $state in
    verb) _describe verb verbs ;;
    arguments)
      case $words[1] in
{_joined(cases)}
      esac ;;
  esac
}}
compdef _frazil frazil
"""


def _zsh_spec(flag: Flag) -> str:
    value = ""
    if flag.takes_value:
        how = "_files -/" if flag.is_folder else "_files" if flag.is_file else " "
        if flag.choices:
            how = f"({' '.join(flag.choices)})"
        value = f":value:{how}"
    if not flag.names:
        return _zsh_quoted(f"*{value}" if value else "*")
    said = flag.help.replace("[", "(").replace("]", ")").replace(":", ",")
    return " ".join(_zsh_quoted(f"{name}[{said}]{value}") for name in flag.names)


def _zsh_quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _fish(verbs: Sequence[Verb]) -> str:
    lines = ["# fish completion of frazil", "complete -c frazil -f"]
    for verb in verbs:
        said = _fish_quoted(verb.help)
        lines.append(f"complete -c frazil -n __fish_use_subcommand -a {verb.name} -d {said}")
        for flag in verb.flags:
            lines.append(
                f"complete -c frazil -n '__fish_seen_subcommand_from {verb.name}'{_fish_spec(flag)}"
            )
    return "\n".join(lines) + "\n"


def _fish_spec(flag: Flag) -> str:
    spec = "".join(
        f" -l {name[2:]}" if name.startswith("--") else f" -s {name[1:]}" for name in flag.names
    )
    if flag.takes_value and flag.names:
        spec += " -r"
    if flag.choices:
        spec += f" -a {_fish_quoted(' '.join(flag.choices))}"
    elif flag.is_folder:
        spec += " -a '(__fish_complete_directories)'"
    elif flag.is_file:
        spec += " -F"
    return spec + (f" -d {_fish_quoted(flag.help)}" if flag.help else "")


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _joined(lines: Sequence[str]) -> str:
    return "\n".join(lines)


SCRIPTS: dict[str, Callable[[Sequence[Verb]], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
