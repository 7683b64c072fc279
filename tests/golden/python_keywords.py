#!/usr/bin/env python3
"""The Python package has a typed keyword for every flag of a command, and for nothing else.

  python_keywords.py BINARY FOLDER   the program and the package's folder; exit 1 where they differ
  python_keywords.py --self-test     sees to it that a missing and a superfluous keyword are found

Nothing is imported but files of the package that need no other, so its compiled part is not needed.
"""
import importlib
import re
import subprocess
import sys
import types

# They say where results go, or how they are shown; the package returns results as values.
OUTPUTS = {'--help', '--format', '--fail-if', '--all-ranks', '--wide', '--dot', '--html', '--perfetto', '--save', '--svg',
           '--timeline', '--trace', '--output', '--each', '--shard'}
COMMANDS = {'simulate': 'Options', 'plan': 'PlanOptions', 'search': 'SearchOptions', 'analyze': 'AnalyzeOptions'}


def load(folder, name):
    """A file of the package, which may import others of them, without the package's own beginning."""
    sys.dont_write_bytecode = True
    package = types.ModuleType('bubblescope_files')
    package.__path__ = [folder]
    sys.modules[package.__name__] = package
    return importlib.import_module(f'{package.__name__}.{name}')


def typed_flags(folder, name):
    """The flags of the keywords in a TypedDict of _options.py."""
    options, words = load(folder, '_options'), load(folder, '_words')
    return {words.flag_of(keyword) for keyword in getattr(options, name).__annotations__}


def printed_flags(help_text):
    """The long name of every flag of a help page."""
    names = re.findall(r'^  (?:-\w,)?(--[\w-]+)', help_text, re.MULTILINE)
    return set(names) | set(re.findall(r'^every command accepts (--[\w-]+)', help_text, re.MULTILINE))


def differences(flags, typed):
    faults = [f'{flag} is not a keyword of _options.py' for flag in sorted(flags - typed - OUTPUTS)]
    return faults + [f'_options.py has a keyword for {flag}, which it does not know' for flag in sorted(typed - flags)]


def self_test():
    help_text = 'Options:\n  -h,--help   Print\n  -m,--microbatches INT   Number\n  --pp INT   Ranks, like --tp\n'
    assert printed_flags(help_text) == {'--help', '--microbatches', '--pp'}
    assert not differences(printed_flags(help_text), {'--microbatches', '--pp'})
    assert len(differences({'--help', '--pp'}, {'--cap'})) == 2


def main(binary, folder):
    def help_of(*words):
        return subprocess.run([binary, *words, '--help'], text=True, capture_output=True, check=True).stdout

    faults, keywords = [], 0
    for command, name in COMMANDS.items():
        typed = typed_flags(folder, name)
        keywords += len(typed)
        faults += [f'{command}: {fault}' for fault in differences(printed_flags(help_of() + help_of(command)), typed)]
    print('\n'.join(faults) or f'{keywords} keywords')
    return bool(faults) or keywords < 150


if __name__ == '__main__':
    if sys.argv[1:] == ['--self-test']:
        self_test()
    else:
        sys.exit(main(*sys.argv[1:]))
