#!/usr/bin/env python3
"""What a wheel holds, and what it needs: check_wheel.py WHEEL

The wheel has the extension module, its stubs and the program. Both need nothing but the C library. For CPython 3.12 and
later it is tagged for the stable ABI, and uses no symbol of Python outside of it.
"""
import pathlib
import struct
import subprocess
import sys
import tempfile
import zipfile

C_LIBRARY = ("libc.so", "libm.so", "libdl.so", "libpthread.so", "librt.so", "ld-linux")


def strings_at(data, start):
    return data[start:data.index(b"\0", start)].decode()


def sections_of(data):
    """The sections of an ELF file of 64 bits: (type, offset, size, link)."""
    if data[:5] != b"\x7fELF\x02":
        raise SystemExit("not an ELF file of 64 bits")
    at, = struct.unpack_from("<Q", data, 40)
    entry, count = struct.unpack_from("<HH", data, 58)
    for number in range(count):
        _, kind, _, _, offset, size, link = struct.unpack_from("<IIQQQQI", data, at + number * entry)
        yield kind, offset, size, link


def libraries_of(data):
    """The libraries that the loader looks for."""
    sections = list(sections_of(data))
    needed = []
    for kind, offset, size, link in sections:
        if kind != 6:  # SHT_DYNAMIC
            continue
        for tag, value in struct.iter_unpack("<QQ", data[offset:offset + size]):
            if tag == 1:  # DT_NEEDED
                needed.append(strings_at(data, sections[link][1] + value))
    return needed


def undefined_of(data):
    """The names that other libraries have to define."""
    sections = list(sections_of(data))
    names = set()
    for kind, offset, size, link in sections:
        if kind != 11:  # SHT_DYNSYM
            continue
        for name, _, _, section, _, _ in struct.iter_unpack("<IBBHQQ", data[offset:offset + size]):
            if section == 0 and name:
                names.add(strings_at(data, sections[link][1] + name))
    return names


def check(wheel):
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        names = archive.namelist()
        module, = (name for name in names if name.startswith("bubblescope/_core.") and name.endswith(".so"))
        program, = (name for name in names if name.endswith(".data/scripts/bubblescope"))
        for name in ("bubblescope/_core.pyi", "bubblescope/py.typed"):
            if name not in names:
                raise SystemExit(f"{wheel}: {name} is missing")
        for name in (module, program):
            data = archive.read(name)
            others = [library for library in libraries_of(data) if not library.startswith(C_LIBRARY)]
            if others:
                raise SystemExit(f"{wheel}: {name} needs {', '.join(others)}")
        stable = "-abi3-" in pathlib.Path(wheel).name
        if stable != (module == "bubblescope/_core.abi3.so"):
            raise SystemExit(f"{wheel}: holds {module}")
        private = sorted(name for name in undefined_of(archive.read(module)) if name.startswith("_Py") and stable)
        outside = [name for name in private if name not in STABLE_PRIVATE]
        if outside:
            raise SystemExit(f"{wheel}: not in the stable ABI: {', '.join(outside)}")
        path = archive.extract(program, folder)
        pathlib.Path(path).chmod(0o755)
        version = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    print(f"{pathlib.Path(wheel).name}: {version}, needs the C library alone"
          f"{', stable ABI' if stable else ''}")


# Names with an underscore that are in the stable ABI all the same.
STABLE_PRIVATE = {"_PyObject_GC_New", "_PyObject_GC_NewVar", "_PyObject_New", "_PyObject_NewVar", "_Py_Dealloc",
                  "_Py_DecRef", "_Py_IncRef", "_Py_NoneStruct", "_Py_NotImplementedStruct", "_Py_EllipsisObject",
                  "_Py_TrueStruct", "_Py_FalseStruct", "_Py_BuildValue_SizeT", "_PyArg_Parse_SizeT",
                  "_PyWeakref_RefType", "_Py_HashSecret", "_PyErr_BadInternalCall", "_Py_SwappedOp",
                  "_PyWeakref_CallableProxyType", "_PyWeakref_ProxyType", "_Py_CheckRecursiveCall", "_PyState_AddModule"}

if __name__ == "__main__":
    check(sys.argv[1])
