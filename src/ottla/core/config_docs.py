"""The documentation of settings: the docstrings below the fields of a configuration class."""

from __future__ import annotations


def field_docs(kind: type) -> dict[str, str]:
    """The docstring of each field of a configuration class; empty if the source is not installed."""
    docs: dict[str, str] = {}
    for base in reversed(kind.__mro__[:-1]):
        docs.update(_docs_in(base))
    return docs


def _docs_in(kind: type) -> dict[str, str]:
    # Imported lazily: only needed to show documentation.
    import ast
    import inspect
    import itertools
    import textwrap

    try:
        source = inspect.getsource(kind)
    except (OSError, TypeError):
        return {}
    class_body = ast.parse(textwrap.dedent(source)).body[0]
    statements = class_body.body if isinstance(class_body, ast.ClassDef) else []
    docs = {}
    for field, below in itertools.pairwise(statements):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                docs[name] = inspect.cleandoc(text)
    return docs
