# SPDX-License-Identifier: BSD-2-Clause
"""The wheel, the declarations, and the types."""
import glob
import os
import pathlib
import re
import subprocess
import sys
import unittest
import zipfile

import bed
import kvroute
from kvroute import _library

header = pathlib.Path(bed.root, 'include/kvroute_http.h').read_text()


class Package(unittest.TestCase):
    def wheel(self):
        return glob.glob(os.path.join(bed.scratch, 'wheel', '*.whl'))[0]

    def test_wheel_is_for_all_pythons_and_old_systems(self):
        tag = re.search(r'-py3-none-manylinux_2_(\d+)_\w+\.whl$', self.wheel())
        self.assertTrue(tag, self.wheel())
        self.assertLessEqual(int(tag[1]), 28)

    def test_wheel_needs_the_c_library_alone(self):
        library = os.path.join(os.path.dirname(kvroute.__file__),
                               'libkvroute-http.so')
        text = subprocess.run(['readelf', '-d', '-W', library], text=True,
                              check=True, capture_output=True).stdout
        needed = re.findall(r'\(NEEDED\).*\[(.*)\]', text)
        self.assertEqual([n for n in needed if not n.startswith('ld-')],
                         ['libc.so.6'])
        text = subprocess.run(['readelf', '--dyn-syms', '-W', library],
                              text=True, check=True, capture_output=True).stdout
        newest = max(int(n) for n in re.findall(r'@GLIBC_2\.(\d+)', text))
        self.assertLessEqual(newest, 28)

    def test_wheel_has_types_and_licence(self):
        names = zipfile.ZipFile(self.wheel()).namelist()
        for name in ('py.typed', 'LICENSE', '_declared.pyi', '_pool.py'):
            self.assertIn('kvroute/' + name, names)

    def test_all_functions_of_the_header_are_declared(self):
        names = set(re.findall(r'\b(kvh_[a-z_]+)\(', re.sub(
            r'/\*.*?\*/', '', header, flags=re.S)))
        self.assertGreater(len(names), 24)
        for name in names:
            self.assertTrue(callable(getattr(_library.lib, name)), name)

    def test_enums_are_those_of_the_header(self):
        for kind, name in ((kvroute.Failure, 'kvh_failure'),
                           (kvroute.How, 'kvh_how')):
            text = re.search(r'enum %s \{(.*?)\};' % name, header, re.S)[1]
            self.assertEqual({(f'KVH_{k.name}', int(k)) for k in kind},
                             {(n, int(v)) for n, v in re.findall(
                                 r'(KVH_\w+) = (\d+)', text)})

    def test_types_are_strict(self):
        package = os.path.join(bed.root, 'bindings/python')
        done = subprocess.run(
            [sys.executable, '-m', 'mypy', '--cache-dir',
             os.path.join(bed.scratch, 'mypy'), '--config-file',
             os.path.join(package, 'pyproject.toml'),
             os.path.join(package, 'src/kvroute')],
            text=True, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_types_reach_programs(self):
        program = os.path.join(bed.scratch, 'typed.py')
        pathlib.Path(program).write_text(
            'from kvroute import Pool\n'
            'reveal_type(Pool(["a:1"]).call("/").request(b"").pick())\n'
            'Pool(servers=5)\n')
        done = subprocess.run(
            [sys.executable, '-m', 'mypy', '--strict', '--cache-dir',
             os.path.join(bed.scratch, 'mypy'), program],
            text=True, capture_output=True, cwd=bed.scratch)
        self.assertIn('list[str]', done.stdout)
        self.assertEqual(done.stdout.count(' error: '), 1, done.stdout)
