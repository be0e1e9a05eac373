# SPDX-License-Identifier: BSD-2-Clause
"""install.py - rivals from PyPI, each in a virtual environment of its own
below the build folder: two of them have programs of the same name."""
import filecmp
import os
import re
import shutil
import subprocess
import sys
import venv

HERE = os.path.dirname(os.path.abspath(__file__))
VERSIONS = (3, 11), (3, 14)
PACKAGES = {'smg': 'smg', 'sglang-router': 'sglang-router',
            'vllm-router': 'vllm-router', 'dynamo': 'ai-dynamo'}


class Absent(Exception):
    """Why a rival is not to be had."""


def requirements(name):
    return os.path.join(HERE, name + '.txt')


def version(name):
    with open(requirements(name)) as file:
        return re.search(r'^%s==(\S+)' % PACKAGES[name], file.read(), re.M)[1]


def folder(build, name):
    return os.path.join(build, 'bench-rivals', 'venv-' + name)


def create(path, name, log):
    shutil.rmtree(path, ignore_errors=True)
    venv.create(path, with_pip=True)
    subprocess.run([os.path.join(path, 'bin', 'pip'), 'install', '--no-input',
                    '--disable-pip-version-check', '--no-deps',
                    '--require-hashes', '-r', requirements(name)],
                   check=True, stdout=log, stderr=log)
    shutil.copy(requirements(name), os.path.join(path, 'installed.txt'))


def is_there(path, name):
    done = os.path.join(path, 'installed.txt')
    return os.path.exists(done) and filecmp.cmp(done, requirements(name),
                                                shallow=False)


def install(build, name):
    """The environment's programs; Absent if there is none."""
    path = folder(build, name)
    if os.uname().sysname + os.uname().machine != 'Linuxx86_64':
        raise Absent('its packages are for Linux on x86_64')
    if not VERSIONS[0] <= sys.version_info < VERSIONS[1]:
        raise Absent('its packages are for Python 3.11 to 3.13')
    if not is_there(path, name):
        print('installing %s %s' % (name, version(name)), flush=True)
        report = path + '.log'
        try:
            with open(report, 'w') as log:
                create(path, name, log)
        except (OSError, subprocess.CalledProcessError) as error:
            raise Absent('pip cannot install it: %s (%s)' % (
                last_line(report) or error, report)) from error
    return os.path.join(path, 'bin')


def last_line(path):
    with open(path, errors='replace') as file:
        lines = [line.strip() for line in file if line.startswith('ERROR')]
    return lines[-1] if lines else ''
