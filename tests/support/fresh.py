"""Python in a fresh process that sees this project."""

import subprocess
import sys

from course.author.build import ROOT, environment


def printed(*arguments, cwd=ROOT, paths=(), **variables):
    """What Python prints with these arguments, and with these paths and variables besides. It must end well."""
    command, env = [sys.executable, *map(str, arguments)], environment(*paths, ROOT) | variables
    streams = dict(capture_output=True, encoding="utf-8", errors="replace")
    done = subprocess.run(command, cwd=cwd, env=env, **streams)
    assert done.returncode == 0, f"ended by {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout
