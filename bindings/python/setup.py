# SPDX-License-Identifier: BSD-2-Clause
"""Builds the library by make, and the declarations for cffi from its header."""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = os.environ.get("KVROUTE_BUILD", "build")
LIBRARY = "libkvroute-http.so"
HEADER = ROOT / "include" / "kvroute_http.h"


def version():
    if not HEADER.exists():
        sys.exit("kvroute: there is no %s: install the package from the "
                 "source tree of kvroute, by pip install ./bindings/python"
                 % HEADER)
    return re.search(r'KVR_VERSION_STRING "(.*)"',
                     (ROOT / "include/kvroute.h").read_text())[1]


def compile_is_possible():
    """Exits with the names of packages that are missing."""
    missing = []
    compiler = shlex.split(os.environ.get("CC", "cc"))
    if not shutil.which("make"):
        missing.append("make")
    if not shutil.which(compiler[0]):
        missing.append("a C compiler, gcc or clang (CC=)")
    elif subprocess.run([*compiler, "-E", "-x", "c", "-o", os.devnull, "-"],
                        input=b"#include <stdio.h>\n#include <xxhash.h>\n",
                        stderr=subprocess.DEVNULL).returncode:
        missing.append("the headers of the C library and xxhash.h")
    if missing:
        sys.exit("kvroute: to build the package, install %s\n"
                 "         on Debian: apt-get install make gcc libc6-dev "
                 "libxxhash-dev" % ", ".join(missing))


def declarations():
    """The header as cffi reads it, without comments and the preprocessor, and
    the errors of the header below it."""
    errors = re.search(r"^enum kvr_error \{.*?^\};$", (
        ROOT / "include/kvroute.h").read_text(), flags=re.S | re.M)[0]
    text = re.sub(r"/\*.*?\*/", "", errors + HEADER.read_text(), flags=re.S)
    text = re.sub(r"^#ifdef __cplusplus.*?^#endif$", "", text,
                  flags=re.S | re.M)
    return re.sub(r"^#.*$", "", text, flags=re.M)


class Build(build_py):
    def run(self):
        import cffi

        compile_is_possible()
        super().run()
        target = "%s/python/%s" % (BUILD, LIBRARY)
        if subprocess.run(["make", "-C", str(ROOT), "-s", "BUILD=" + BUILD,
                           "-j%d" % (os.cpu_count() or 1),
                           target]).returncode:
            sys.exit("kvroute: make %s failed; its output is above" % target)
        package = pathlib.Path(self.build_lib, "kvroute")
        shutil.copy(ROOT / target, package / LIBRARY)
        shutil.copy(ROOT / "LICENSE", package)
        ffi = cffi.FFI()
        ffi.cdef(declarations())
        ffi.set_source("kvroute._declared", None)
        ffi.emit_python_code(str(package / "_declared.py"))


class Wheel(bdist_wheel):
    """One wheel for each version of Python, and for each libc that has the
    newest symbol which the library needs."""

    def get_tag(self):
        library = pathlib.Path(self.bdist_dir, "kvroute", LIBRARY)
        platform = sysconfig.get_platform().replace("-", "_")
        if library.exists():
            minors = re.findall(rb"\0GLIBC_2\.(\d+)", library.read_bytes())
            if minors and platform.startswith("linux_"):
                platform = platform.replace("linux", "manylinux_2_%d" % max(
                    17, *map(int, minors)))
        return "py3", "none", platform


class Binary(Distribution):
    def has_ext_modules(self):
        return True


setup(version=version(), distclass=Binary,
      cmdclass={"build_py": Build, "bdist_wheel": Wheel})
