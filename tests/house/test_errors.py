"""The error tree is drawn where it is defined, and nothing swallows all errors in silence."""

from __future__ import annotations

import ast
import re

import pytest

from tests.house.sources import Source, house, report

REASON = re.compile(r"#.*\btop of loop:\s*\w")
EVERYTHING = {"Exception", "BaseException"}
BRANCH = re.compile(r"^(?P<trunk>[\s│├└─]*)(?P<name>[A-Z]\w+)(\s|$)")


def except_findings(source: Source) -> list[str]:
    """Handlers that catch everything without saying why they may."""
    lines = source.text.splitlines()
    findings = []
    for node in ast.walk(source.tree()):
        if isinstance(node, ast.ExceptHandler):
            if node.type is None:
                findings.append(f"{source.at(node)}: bare except; name the errors you can handle")
                continue
            caught, begin = node.type, node.lineno
        elif isinstance(node, ast.Call) and _last_name(node.func) == "suppress":
            caught, begin = ast.Tuple(elts=node.args), node.lineno
        else:
            continue
        end = getattr(caught, "end_lineno", None) or begin
        if _catches_everything(caught) and not any(map(REASON.search, lines[begin - 1 : end])):
            findings.append(
                f"{source.at(node)}: catches everything; name the errors you can handle, or say"
                " on the line why this is the `# top of loop: ...`"
            )
    return findings


def _catches_everything(caught: ast.expr) -> bool:
    kinds = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(_last_name(kind) in EVERYTHING for kind in kinds)


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def tree_findings(text: str) -> list[str]:
    """Differences between the tree in the docstring of `errors.py` and its classes."""
    module = ast.parse(text)
    drawn = drawn_parents(ast.get_docstring(module) or "")
    defined = {
        node.name: _last_name(node.bases[0]) if node.bases else ""
        for node in module.body
        if isinstance(node, ast.ClassDef)
    }
    findings = [f"{name} is not drawn in the tree" for name in defined if name not in drawn]
    findings += [f"{name} is drawn but does not exist" for name in drawn if name not in defined]
    return findings + [
        f"{name} is drawn under {drawn[name]} but is a {parent}"
        for name, parent in defined.items()
        if name in drawn and drawn[name] is not None and drawn[name] != parent
    ]


def drawn_parents(docstring: str) -> dict[str, str | None]:
    """Name to the name it hangs from; the root hangs from nothing. A line of the tree is the root
    or carries a branch; prose has neither."""
    parents: dict[str, str | None] = {}
    above: list[tuple[int, str]] = []
    for line in docstring.splitlines():
        branch = BRANCH.match(line)
        if branch is None or not (branch["trunk"].strip() or (line[0] == " " and not above)):
            continue
        column = branch.start("name")
        while above and above[-1][0] >= column:
            above.pop()
        parents[branch["name"]] = above[-1][1] if above else None
        above.append((column, branch["name"]))
    return parents


TREE = '''"""The tree.

    Root
    ├── Wrong     fix it
    │   └── Worse     fix it more
    └── Late      come back

Wrong and Late promise something.
"""
class Root(Exception): ...
class Wrong(Root): ...
class Worse(Wrong): ...
class Late(Root): ...
'''


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (TREE, []),
        (TREE + "class New(Late): ...\n", ["New is not drawn"]),
        (TREE.replace("class Late(Root): ...", ""), ["Late is drawn but does not exist"]),
        (TREE.replace("Worse(Wrong)", "Worse(Root)"), ["Worse is drawn under Wrong but is a Root"]),
    ],
)
def test_the_tree_rule_sees(text: str, wanted: list[str]) -> None:
    """An error that is missing from the drawing, or hangs elsewhere, is found."""
    findings = tree_findings(text)
    assert len(findings) == len(wanted)
    assert all(want in finding for want, finding in zip(wanted, findings, strict=True))


@pytest.mark.parametrize(
    ("clause", "count"),
    [
        ("except ValueError:", 0),
        ("except (OSError, ValueError):", 0),
        ("except Exception:  # top of loop: one bad connection must not stop the others", 0),
        ("except Exception:  # noqa: BLE001 - top of loop: one bad step must not stop the rest", 0),
        ("except:", 1),
        ("except:  # top of loop: no reason is good enough for this one", 1),
        ("except Exception:", 1),
        ("except BaseException as error:", 1),
        ("except (ValueError, Exception):", 1),
        ("except builtins.Exception:", 1),
        ("except Exception:  # top of loop:", 1),
    ],
)
def test_the_except_rule_sees(clause: str, count: int) -> None:
    """A handler for everything is found unless it gives its reason."""
    text = f"try:\n    work()\n{clause}\n    pass\n"
    assert len(except_findings(Source(module="frazil.log.writer", text=text))) == count


def test_the_except_rule_sees_suppress() -> None:
    """Suppressing everything is catching everything."""
    quiet = "from contextlib import suppress\nwith suppress({}):\n    work()\n"
    for caught, count in (("OSError", 0), ("Exception", 1), ("OSError, BaseException", 1)):
        source = Source(module="frazil.log.writer", text=quiet.format(caught))
        assert len(except_findings(source)) == count


def test_the_error_tree_is_drawn() -> None:
    """The docstring of errors.py shows every error, under the one it belongs to."""
    (errors,) = (source for source in house() if source.module == "frazil.errors")
    findings = tree_findings(errors.text)
    assert not findings, report(findings)


def test_nothing_swallows_everything() -> None:
    """`except Exception` lives only at the top of a loop or a connection, with its reason."""
    findings = [line for source in house() for line in except_findings(source)]
    assert not findings, report(findings)
