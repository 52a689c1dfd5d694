"""PyTorch of any version for exporting, without CUDA: old_torch.py VERSION FOLDER, for this Python. The wheel comes from PyPI by pip; of
it FOLDER gets what exporting imports. CUDA's libraries and PyTorch's own for it, gigabytes that nothing here calls, are left out: a
library that defines their names stands in their place, which says of everything that it failed, and that there are 0 devices. Needs
pip, a C compiler and binutils; the packages that torch imports (sympy, networkx, jinja2, fsspec, filelock, typing_extensions) go there,
too."""
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

LEFT_OUT = re.compile(r"torch/(include|test|share)/|torch/lib/lib(torch_cuda|c10_cuda|torch_nvshmem|caffe2_nvrtc|cusparse|cu[a-z]+\d*|nv|nccl)[^/]*$")
SYSTEM = re.compile(r"(linux-vdso|ld-linux|lib(c|m|dl|rt|pthread|util|gcc_s|stdc\+\+|numa)\.so)")
PACKAGES = ["mpmath", "networkx", "jinja2", "markupsafe", "fsspec", "filelock", "typing_extensions", "packaging"]


def lines(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def download(version, folder):
    with tempfile.TemporaryDirectory(dir=folder) as here:
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", here, f"torch=={version}"], check=True)
        with zipfile.ZipFile(next(pathlib.Path(here).glob("torch-*.whl"))) as z:
            z.extractall(folder, [n for n in z.namelist() if not LEFT_OUT.match(n)])
    sympy = "sympy==1.13.1" if int(version.split(".")[1]) < 7 else "sympy>=1.13.3"
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder, sympy, *PACKAGES], check=True)


def undefined(libraries):
    """{name: its version} of names that they want and no library defines, without those of Python; the libraries that they want and
    there are not."""
    wanted, defined, needed, there = {}, set(), set(), {p.name for p in libraries}
    for p in libraries:
        needed.update(re.findall(r"\(NEEDED\).*\[(.*)\]", "\n".join(lines("readelf", "-dW", p))))
        for line in lines("nm", "-D", p):
            *_, kind, name = line.split()
            name, _, version = name.partition("@")
            if kind == "U":
                wanted[name] = wanted.get(name) or version.strip("@")
            elif kind not in "wv":
                defined.add(name)
    for line in lines("ldconfig", "-p"):
        if "x86-64" in line and SYSTEM.match(line.split()[0]):
            defined.update(re.sub("@.*", "", x.split()[-1]) for x in lines("nm", "-D", "--defined-only", line.split()[-1]))
    return {n: v for n, v in wanted.items() if n not in defined and not re.match("_?Py|__tls_get_addr", n)}, {n for n in needed - there if not SYSTEM.match(n)}


def stand_in(folder):
    """The library in CUDA's place. Functions of C return an error; those of C++ zeros to refer to, whose address is false as a bool, and
    0 devices; what constructors make has a type, which pybind11 asks for, and methods that do nothing."""
    lib = folder / "torch/lib"
    versions, missing = undefined([*(p for p in lib.glob("*.so*") if not p.is_symlink() and p.stem != "stand_in"), *(folder / "torch").glob("_C*.so")])
    names = set(versions)
    types, tables = {n for n in names if n.startswith("_ZTI")}, {n for n in names if re.match("_ZT[VS]", n)}
    text = [".bss", ".balign 64"] + [f".globl {n}\n.type {n},@object\n{n}:" for n in sorted(tables)] + [".zero 4096", ".data", ".balign 8"]
    for k, n in enumerate(sorted(types)):  # what pybind11 asks for names
        text += [f".globl {n}\n.type {n},@object\n{n}: .quad _ZTVN10__cxxabiv117__class_type_infoE+16, name{k}", f'name{k}: .asciz "{n[4:]}"', ".balign 8"]
    text += ["methods: .quad 0, type, " + ", ".join(["nothing"] * 64), "type: .quad _ZTVN10__cxxabiv117__class_type_infoE+16, name", 'name: .asciz "1T"']
    text += [".bss", ".balign 4096", "zeros: .zero 4096", ".text", "nothing: xor %eax, %eax", "ret"]
    left = names - types - tables
    for pattern, body in (("_Z.*12device_count", "xor %eax, %eax"), ("_ZN.*C[12]E", "lea methods+16(%rip), %rax\nmov %rax, (%rdi)"),
                          ("_Z", "lea zeros(%rip), %rax"), ("", "mov $100, %eax")):
        those = sorted(n for n in left if re.match(pattern, n))
        text += [f".globl {n}\n.type {n},@function\n{n}:" for n in those] + [body, "ret"]
        left -= set(those)
    text += ['.section .note.GNU-stack,"",@progbits']
    source, script = lib / "stand_in.s", lib / "stand_in.map"
    source.write_text("\n".join(text) + "\n")
    script.write_text("".join(f"{v} {{ {' '.join(n + ';' for n in names if versions[n] == v)} }};\n" for v in sorted(set(versions.values())) if v))
    subprocess.run(["cc", "-shared", "-nostdlib", f"-Wl,--version-script={script}", "-o", lib / "stand_in.so", source, "-l:libstdc++.so.6"], check=True)
    for n in missing:
        (lib / n).unlink(missing_ok=True)
        (lib / n).symlink_to("stand_in.so")


def forget_kernels(folder):
    """PyTorch 2.14 puts kernels of its own in the place of those of CUDA, which must be there: not here."""
    init = folder / "torch/_native/__init__.py"
    if init.exists():
        init.write_text(init.read_text().replace("registry._register_all_overrides()", "pass"))


def main():
    version, folder = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "torch").exists():
        download(version, folder)
    stand_in(folder)
    forget_kernels(folder)


if __name__ == "__main__":
    main()
