"""Level 1, fuzzed: programs that nobody thought of are refused, or right. They never crash.

`PYTHONPATH=tests/support python tests/levels/hardware/test_hardware_fuzz.py FIRST LAST` runs those seeds.
"""

import sys

import random_programs


def test_random_programs_and_calls_are_refused_or_right(seeds, tmp_path):
    random_programs.check(__file__, seeds, tmp_path)


if __name__ == "__main__":
    random_programs.main(random_programs.Both, *map(int, sys.argv[1:]))
