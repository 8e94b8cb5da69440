"""Run the code of an attack without any walls, as a careless host would, to see that it works."""

import ast
import os
import subprocess
import sys

from attacks.outside import SECRET


def run_bare(code: str) -> str:
    """Return what `code` printed, the value of its last line included."""
    done = subprocess.run(
        [sys.executable, "-c", _printing(code)],
        env={"HOST_SECRET": SECRET, "PATH": os.environ["PATH"]},
        close_fds=False,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    return done.stdout + done.stderr


def _printing(code: str) -> str:
    tree = ast.parse(code)
    last = tree.body[-1]
    if isinstance(last, ast.Expr):
        shown = ast.Call(ast.Name("print", ast.Load()), [last.value], [])
        tree.body[-1] = ast.Expr(shown)
    return ast.unparse(ast.fix_missing_locations(tree))
