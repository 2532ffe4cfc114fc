"""Run a student's code in a process that sees no solutions and can do no harm, as far as the system can ensure that."""
