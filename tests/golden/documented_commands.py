#!/usr/bin/env python3
"""Every command that the documentation shows prints what the documentation says it prints.

  documented_commands.py BINARY DOCUMENT...             compares; exit 1 where a block differs
  documented_commands.py BINARY --rewrite DOCUMENT...   writes the outputs anew; read the diff

A block is fenced, marked `console`, and made of lines `$ bubblescope ...` (ending in a backslash
where they go on), each followed by its output, stdout and stderr together. `...` alone on a line
stands for any lines. Commands of one block share an empty folder, in which `cat FILE` works too.
"""
import argparse, difflib, os, re, subprocess, sys, tempfile

FENCE = re.compile(r'^```console\n(.*?)^```$', re.M | re.S)


def split_block(block):
    """[(command as shown, expected output)]"""
    parts, lines = [], block.splitlines(keepends=True)
    while lines:
        shown = lines.pop(0)
        if not shown.startswith('$ '):
            raise SystemExit(f'a console block must begin with "$ ", not {shown!r}')
        while shown.endswith('\\\n'):
            shown += lines.pop(0)
        output = ''
        while lines and not lines[0].startswith('$ '):
            output += lines.pop(0)
        parts.append((shown, output))
    return parts


def run(shown, binary, folder):
    command = shown[2:].replace('\\\n', ' ').strip()
    if not re.match(r'(bubblescope|cat|printf) ', command):
        raise SystemExit(f'only bubblescope, cat and printf are run, not: {command}')
    environment = dict(os.environ, PATH=os.path.dirname(binary) + os.pathsep + os.environ['PATH'])
    done = subprocess.run(['bash', '-c', command], cwd=folder, env=environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    return done.stdout


def matches(expected, actual):
    pattern = ''.join('(?:.*\n)*?' if line == '...\n' else re.escape(line)
                      for line in expected.splitlines(keepends=True))
    return re.fullmatch(pattern, actual) is not None


def check_block(block, binary, rewrite):
    """The block as it should be, and the differences."""
    said, differences = '', []
    with tempfile.TemporaryDirectory() as folder:
        for shown, expected in split_block(block):
            actual = run(shown, binary, folder)
            same = matches(expected, actual)
            said += shown + (expected if same or not rewrite else actual)
            if not same:
                differences += [shown] + list(difflib.unified_diff(
                    expected.splitlines(keepends=True), actual.splitlines(keepends=True),
                    'documented', 'printed'))
    return said, differences


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('binary')
    parser.add_argument('documents', nargs='+')
    parser.add_argument('--rewrite', action='store_true')
    args = parser.parse_args()
    binary, blocks, differing = os.path.abspath(args.binary), 0, 0
    for path in args.documents:
        with open(path) as file:
            text = file.read()
        fresh = text
        for block in FENCE.findall(text):
            blocks += 1
            said, differences = check_block(block, binary, args.rewrite)
            fresh = fresh.replace(block, said)
            differing += bool(differences)
            sys.stdout.write(''.join([f'{path}:\n'] + differences) if differences else '')
        if args.rewrite and fresh != text:
            with open(path, 'w') as file:
                file.write(fresh)
    print(f'{blocks} documented block(s), {differing} differ')
    return 0 if blocks and (args.rewrite or not differing) else 1


if __name__ == '__main__':
    sys.exit(main())
