"""The machine instructions that LLVM generates from a program's text."""

import re

from levels.support.machine import optimised, target_machine


def instructions_of(assembly):
    """The instructions of an assembly text and the labels that they jump to, without directives and comments."""
    body = assembly.split("program:", 1)[1].splitlines()
    lines = [re.split(r"\s*(?:##|//|;|# )", line)[0].expandtabs(8).rstrip() for line in body]
    instructions = [line for line in lines if re.match(r"\s+[^.\s]", line)]
    jumps = {word + ":" for word in re.findall(r"[.\w$]+", " ".join(instructions))}
    return "\n".join(line for line in lines if line in jumps or line in instructions)


def listing(program):
    """The machine instructions of this processor for a Program."""
    target = target_machine()
    return instructions_of(target.emit_assembly(optimised(program.text, target)))
