"""Where a student's code runs: a process that sees no solution and can do no harm, as far as the system allows it."""
