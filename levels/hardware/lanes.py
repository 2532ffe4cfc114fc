"""Lanes: one instruction works on several numbers, where a loop takes several of its counters at once."""

# Built from 01_hardware.ipynb: edit there, then run its last cell.

from .values import Index


class _Whole:
    """Where a number lies: a whole number in a register, or one for each lane. Its * and + write instructions."""

    def __init__(self, a, register, lanes=None):
        self.a, self.register, self.lanes = a, register, lanes  # lanes: None, "side by side" or "apart"
        self.kind = a.wide("i64") if lanes == "apart" else "i64"

    def write(self, instruction, other):
        text = f"{instruction} {self.kind} {self.register}, {other.register}"
        return _Whole(self.a, self.a.write(text), self.lanes)

    def __add__(self, other):
        return self.write("add", other)

    def __mul__(self, other):
        return self.write("mul", other)

    def like(self, register):
        """Another whole number, in as many lanes as this one."""
        return _Whole(self.a, self.a.spread("i64", register) if self.lanes == "apart" else register, self.lanes)


def _wholes(a, indices):
    """These indices as whole numbers: one each for all lanes, where these lie side by side, or one each in every lane."""
    if indices[-1].register and not any(i.each for i in indices[:-1]):
        return [_Whole(a, i.register, "side by side" if indices[-1].each else None) for i in indices]
    return [_Whole(a, i.each or a.spread("i64", i.register), "apart") for i in indices]


def _counters(a, first, extent, end):
    """The counters of one turn, a lane each. Lanes past the end are masked: what they compute is never kept."""
    wide, each = a.wide("i64"), f"<{', '.join(f'i64 {lane}' for lane in range(a.lanes))}>"
    each = a.write(f"add {wide} {a.spread('i64', first)}, {each}")
    a.mask = a.constant("i1", "true")  # all lanes, in every turn: then a mask costs nothing, on any processor
    if not end.isdigit() or int(end) % a.lanes:
        a.mask = a.write(f"icmp slt {wide} {each}, {a.spread('i64', end)}")
    return Index(a, first, extent, each)


def _load_lanes(a, kind, pointer, place):
    """One load where the numbers lie side by side, else one for each lane. (LLVM's gather was slower where we tried.)"""
    wide, size = a.wide(kind), 8 if kind == "i64" else a.dtype.itemsize
    mask, places, register = f"{a.wide('i1')} {a.mask}", a.wide("i64"), "poison"
    if place.lanes == "side by side":
        address = a.write(f"getelementptr {kind}, ptr {pointer}, i64 {place.register}")
        return a.write(f"call {wide} @llvm.masked.load(ptr align {size} {address}, {mask}, {wide} zeroinitializer)")
    inside = a.write(f"select {mask}, {places} {place.register}, {places} zeroinitializer")  # masked: element 0
    for lane in range(a.lanes):
        one = a.write(f"extractelement {places} {inside}, i32 {lane}")
        one = a.write(f"getelementptr {kind}, ptr {pointer}, i64 {one}")
        one = a.write(f"load {kind}, ptr {one}")
        register = a.write(f"insertelement {wide} {register}, {kind} {one}, i32 {lane}")
    return register


def _store_lanes(a, register, pointer, place):
    """Store all lanes that are not masked: side by side, or each at its own place."""
    address = a.write(f"getelementptr {a.real}, ptr {pointer}, {place.kind} {place.register}")
    name, kind = ("scatter", a.wide("ptr")) if place.lanes == "apart" else ("store", "ptr")
    where = f"{kind} align {a.dtype.itemsize} {address}, {a.wide('i1')} {a.mask}"
    a.emit(f"call void @llvm.masked.{name}({a.kind} {register}, {where})")


def _unmasked(a, new, old):
    """The register of `new` where a sum grows: in lanes that are not masked or, outside of lanes, in the first one."""
    if a.lanes == 1:
        return new.register
    mask = a.mask or f"<i1 true{', i1 false' * (a.lanes - 1)}>"
    return a.write(f"select {a.wide('i1')} {mask}, {a.kind} {new.register}, {a.kind} {old.register}")
