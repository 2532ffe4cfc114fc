"""The value of each register of a row program in one row's iteration, and the instruction that computes it.

One copy of the program's text stores each number after the line that computes it; float64 arithmetic is unchanged by
that. Another copy carries line numbers as debug information, so that LLVM maps each instruction to its line.
"""

import ctypes
import re
import struct

import numpy as np

ENTRY = re.compile(r"%(slot\d+|at\.\w+|word\.\w+) = ")  # a line that runs before the others
MADE = re.compile(r"(?!%i\d)(%[\w.]+) = (?!alloca )")  # a line that makes a number, other than a loop's counter
DEBUG = """
!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!5}
!0 = distinct !DICompileUnit(language: DW_LANG_C, file: !1, isOptimized: true, emissionKind: LineTablesOnly)
!1 = !DIFile(filename: "program", directory: "")
!2 = distinct !DISubprogram(name: "program", scope: !1, file: !1, line: 1, type: !3, unit: !0, spFlags: DISPFlagDefinition)
!3 = !DISubroutineType(types: !4)
!4 = !{}
!5 = !{i32 2, !"Debug Info Version", i32 3}
"""
FIRST = 10  # the number of the first line's metadata


class Probe:
    """The program that an Ear recorded, run again on the same inputs and the old values of its variables."""

    def __init__(self, ear):
        written = ear.last("StepWriter.write")
        launched = ear.last("RowProgram.launch")
        writer = written.known["self"]
        self.program = written.result
        self.graph = writer.graph
        self.known = writer.values
        self.parts = writer.parts
        self.text = self.program.text.split("\n")
        self.kinds = kinds_of(self.program.text)
        self.start = next(k for k, line in enumerate(self.text) if k > 1 and not ENTRY.match(line))
        made = {found[1]: k for k, line in enumerate(self.text) if k >= self.start and (found := MADE.match(line))}
        self.at = {register: k for register, k in made.items() if self.kinds[register] in ("double", "i64")}
        # The counter of the loop over the rows. Its name ends in the loop's number. Two lines stand before its `test`.
        self.counter = written.known["k"].register
        self.first = self.text.index(f"test{self.counter.removeprefix('%i')}:") - 2
        rows = [value for x, values in self.known.items() if self.parts[x] == "row" for value in values.flat]
        sums = [k for k, line in enumerate(self.text) if re.match(r"store (?!i64)\w+ %[\w.]+, ptr %slot", line)]
        # The lines of one iteration: from the first number of the row to the last sum.
        self.body = range(min(self.at[x.register] for x in rows if hasattr(x, "register")), max(sums) + 1)
        self.values, self.outs, self.variables = self.run(ear, [*writer.arrays], launched)
        self.processor, self.instructions, self.listing = self.translated()

    def registers(self, nodes):
        """{quantity: its register}, given {quantity: (node, its index)}. Adds two products that only the text has."""
        found = {}
        for quantity, (node, place) in nodes.items():
            place = (0, *place[1:]) if self.parts[node] == "row" else place
            found[quantity] = getattr(self.known[node][place], "register", None)
        found["x·w"] = self.product(found["x"], found["w"])
        found["x·slope"] = self.product(found["x"], found["slope"])
        return found

    def product(self, x, y):
        """The register that holds the product of two registers."""
        ends = f"{x}, {y}", f"{y}, {x}"
        return next(r for r, k in self.at.items() if " fmul " in self.text[k] and self.text[k].endswith(ends))

    def line(self, register):
        return self.text[self.at[register]].strip()

    def running(self, term):
        """The running sum that a term is added to: (its value before this row's iteration, its value after it)."""
        pattern = re.compile(rf"(%[\w.]+), {re.escape(term)}$|{re.escape(term)}, (%[\w.]+)$")
        after, found = next(
            (r, found)
            for r, k in self.at.items()
            if " fadd " in self.text[k] and (found := pattern.search(self.text[k]))
        )
        return self.values[found[1] or found[2]], self.values[after]

    def loop_lines(self):
        """The indices of the lines of the loop over the rows: its head, then None for its body, then its end."""
        later = [k for r, k in self.at.items() if k >= self.body.stop and self.kinds[r] == "double"]
        head = next(k for k in self.at.values() if k > self.first)
        return [*range(self.first, head), None, *range(self.body.stop, min(later))]

    def run(self, ear, owners, launched):
        """Run on copies of the inputs. Return ({register: its value}, the results, {variable: its new array})."""
        from levels.support.machine import machine_code

        kept = [*self.at]
        batch = launched.known["self"].every.size
        probed = np.zeros((batch + 1, len(kept)))
        out = [x.numpy() for x in launched.known["outs"]]
        steps, rows, batches = launched.known["sizes"]
        variables = {owner: ear.before[owner].copy() for owner in owners if type(owner) is not int}
        arrays = [*out]
        arrays += [launched.known["args"][x].numpy() if type(x) is int else variables[x] for x in owners]
        arrays.append(probed)
        words = struct.pack(f"{3 + len(arrays)}q", steps, rows, batches, *(array.ctypes.data for array in arrays))
        engine, address = machine_code(self.written(kept, batch))
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)(words)
        del engine
        values = {}
        for k, register in enumerate(kept):
            cell = probed[0 if self.at[register] in self.body else batch, k : k + 1]
            values[register] = float(cell[0]) if self.kinds[register] == "double" else int(cell.view(np.int64)[0])
        return values, out, variables

    def written(self, kept, batch):
        """The program's text with code after the definition of each register in `kept` that stores its value."""
        nth = {register: k for k, register in enumerate(kept)}
        lines = []
        for k, line in enumerate(self.text):
            if k == self.start:
                lines += [f"  %address.probe = getelementptr i64, ptr %words, i64 {len(self.program.words)}"]
                lines += ["  %probe = load ptr, ptr %address.probe"]
            if k == self.body.start:
                lines.append(f"  %turn = mul i64 {self.counter}, {len(kept)}")
            lines.append(line)
            register = (found := MADE.match(line)) and found[1]
            if register in nth:
                where = f"%at{register[1:]}"
                base = "%turn" if k in self.body else str(batch * len(kept))
                lines += [f"  {where} = add i64 {base}, {nth[register]}"]
                lines += [f"  {where}.p = getelementptr double, ptr %probe, i64 {where}"]
                lines += [f"  store {self.kinds[register]} {register}, ptr {where}.p"]
        return "\n".join(lines)

    def translated(self):
        """(the processor, {register: the index of its instruction}, [(instruction, the index of its line)])"""
        from llvmlite import binding as llvm

        from levels.support.machine import optimised, target_machine

        lines = []
        notes = []
        for k, line in enumerate(self.text):
            if line.startswith("define"):
                line = line.replace(" {", " !dbg !2 {")
            elif k > 1 and line not in ("", "}") and not line.endswith(":"):
                line += f", !dbg !{FIRST + k}"
                notes.append(f"!{FIRST + k} = !DILocation(line: {k + 1}, column: 1, scope: !2)")
            lines.append(line)
        target = target_machine()
        assembly = target.emit_assembly(optimised("\n".join([*lines, DEBUG, *notes]), target))
        listing = []
        came = None
        for line in assembly.split("program:", 1)[1].splitlines():
            line = re.split(r"\s*(?:##|//|;|# )", line)[0].expandtabs(8).rstrip()
            if place := re.match(r"\s+\.loc\s+\d+ (\d+)", line):
                came = int(place[1]) - 1
            elif re.match(r"\s+[^.\s]", line):
                listing.append((" ".join(line.split()), came))
            elif line.startswith(("\t.section", "        .section", ".Lfunc_end")):
                break
        found = {}
        for register, k in self.at.items():
            those = [n for n, (text, came) in enumerate(listing) if came == k and does(self.text[k], text)]
            if those:  # for a select, instructions that prepare it come first
                found[register] = those[-1 if " select " in self.text[k] else 0]
        return llvm.get_host_cpu_name(), found, listing

    def instruction(self, register):
        return self.listing[self.instructions[register]][0]

    def store_instruction(self, k):
        """The index of the instruction made from line k, a store; None if LLVM replaced it by another one."""
        those = [n for n, (text, came) in enumerate(self.listing) if came == k and re.match(r"v?mov|st", text)]
        return those[0] if those else None


# {LLVM's name of an instruction: a pattern that the processor's name for it contains}
DOES = {"fadd": "add", "fsub": "sub", "fmul": "mul", "fdiv": "div", "load": "mov|ld"}


def does(line, instruction):
    """Whether an instruction does what a line says. (LLVM also gives the line's number to preparing instructions.)"""
    return bool(re.match(rf"\w*({DOES.get(line.split()[2], '')})", instruction))


def kinds_of(text):
    """{register: its type}, as LLVM parses the text."""
    from llvmlite import binding as llvm

    module = llvm.parse_assembly(text)
    made = (each for function in module.functions for block in function.blocks for each in block.instructions)
    return {f"%{each.name}": str(each.type) for each in made if each.name}
