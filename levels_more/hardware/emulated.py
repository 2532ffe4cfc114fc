"""Run programs for ARM64 on any machine: an emulator executes the object file, instruction by instruction.

`targets.RUNNERS["aarch64"] = run_arm` lets `run_on` use it. The emulator is unicorn; pyelftools reads the object file.
"""

import io
import struct
import time

from levels_more.hardware.targets import START

# their addresses in the emulated memory, beyond all arrays
CODE = 1 << 36
STACK = CODE + (1 << 28)
BACK = CODE + (1 << 29)
MEGABYTE = 1 << 20
# Four instructions move an address to a register, 16 bits each. {type of relocation: bits that it is shifted right}
# (https://github.com/ARM-software/abi-aa/blob/main/aaelf64/aaelf64.rst)
MOVES = {264: 0, 266: 16, 268: 32, 269: 48}


def link(code):
    """Link an object file. Returns (the bytes to place at CODE, the address of the first instruction)."""
    from elftools.elf.elffile import ELFFile

    file = ELFFile(io.BytesIO(code))
    memory = bytearray()
    places = {}
    for k, section in enumerate(file.iter_sections()):
        if section["sh_flags"] & 2 and section["sh_size"]:  # 2: it is loaded into memory (SHF_ALLOC)
            memory += bytes(-len(memory) % 64)
            places[k] = CODE + len(memory)
            memory += section.data()
    symbols = file.get_section_by_name(".symtab")
    text = places[file.get_section_index(".text")]
    relocations = file.get_section_by_name(".rela.text")
    for each in relocations.iter_relocations() if relocations else ():
        symbol = symbols.get_symbol(each["r_info_sym"])
        at = text + each["r_offset"]
        value = places[symbol["st_shndx"]] + symbol["st_value"] + each["r_addend"]
        (word,) = struct.unpack_from("<I", memory, at - CODE)
        word |= (value >> MOVES[each["r_info_type"]] & 0xFFFF) << 5
        struct.pack_into("<I", memory, at - CODE, word)
    return bytes(memory), text


def run_arm(code, image):
    """Run an ARM64 object file, as `targets.run_wasm` runs a module. Raises RuntimeError if a package is missing."""
    try:
        import unicorn
        from unicorn import arm64_const as arm

        program, start = link(code)
    except ModuleNotFoundError as error:
        raise RuntimeError(f"run_arm needs {error.name}: `python3 -m course setup` installs it") from None
    machine = unicorn.Uc(unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM)
    for address, size in ((CODE, MEGABYTE), (STACK, MEGABYTE), (BACK, 4096), (START, len(image))):
        machine.mem_map(address, -(-size // 4096) * 4096)
    machine.mem_write(CODE, program)
    machine.mem_write(START, bytes(image))
    machine.reg_write(arm.UC_ARM64_REG_SP, STACK + MEGABYTE // 2)
    machine.reg_write(arm.UC_ARM64_REG_LR, BACK)  # where the program returns to
    machine.reg_write(arm.UC_ARM64_REG_X0, START)
    began = time.perf_counter()
    machine.emu_start(start, BACK)
    return time.perf_counter() - began, machine.mem_read(START, len(image))
