#!/usr/bin/env python3
"""Every command's tables on terminals of 60 and 80 columns: no line is wider, no number is cut.

  terminal_tables.py BINARY

Each command prints to a pseudo-terminal, and once without one, where nothing is fitted. A number that is only on the
terminal must not be the beginning of another: it would have lost digits. (Columns that are folded into one
have sums of their own.) A command of `--help` that is not run here is a failure, too.
"""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import unicodedata

MODEL = '--model llama3-70b --gpu h100 --tp 8'
COSTS = '--f 10 --i 10 --w 9 --p2p 0.4'
COMMANDS = {
    'simulate': [
        'zb-h1 --pp 8 -m 64 --f 10.123456 --i 12.654321 --w 9.5 --p2p 0.4321',
        f'1f1b --pp 8 -m 64 {MODEL}',
        f'1f1b --pp 4 -m 8 {COSTS} --jitter 0.05 --sensitivity',
        f'interleaved --pp 4 --vpp 2 -m 8 {COSTS} --network bytes=64MiB,link=400,per-node=2,nic=200',
    ],
    'compare': [
        f'all --pp 8 -m 64 {COSTS}',
        f'gpipe,1f1b,zb-h1,interleaved,v-half --pp 8 -m 64 {MODEL}',
        f'1f1b,zb-h1 --pp 4 -m 8 {COSTS} --jitter 0.05',
        f'1f1b,gpipe --pp 2 -m 4 {COSTS} --backend cpu --work sleep',
    ],
    'search': [f'--pp 4 -m 8 {COSTS} --cap 3', f'--placement v --pp 3 -m 6 {COSTS} --cap 4'],
    'plan': [
        '--pp 4,8 -m 16,32 --p2p 0.4 --cap 8',
        '--pp 4,8 -m 16,32 --schedules all,searched --p2p 0.4',
        '--model llama3-70b --gpus 128 --global-batch-size 1024 --pp 4,8 --tp 4,8 --schedules 1f1b,interleaved,zb-h1',
    ],
    'run': [f'1f1b --pp 2 -m 4 {COSTS} --backend cpu --work sleep'],
    'calibrate': ['1f1b --pp 2 -m 2 --backend cpu --steps 3 --hidden-size 16 -o {folder}/calibrated.json'],
    'analyze': ['{folder}/step.json', '{folder}/trace.json'],
    'check': ['zb-v --pp 8 -m 16', '1f1b --pp 4 -m 8'],
    'convert': [],  # a file's content
    'diff': ['{folder}/step.json {folder}/other.json', '{folder}/step.json {folder}/slower.json'],
    'list': ['schedules', 'models', 'gpus', 'formats', 'backends', 'profiles', 'modes', ''],
    'partition': ['{folder}/profile.txt --workers 4 --bandwidth 1.25GB/s', '{folder}/profile.txt --workers 4 --method minmax'],
    'completion': [],  # a script for a shell
}
PREPARE = [
    f'simulate 1f1b --pp 4 -m 8 {COSTS} --save {{folder}}/step.json --trace {{folder}}/trace.json',
    f'simulate zb-h1 --pp 4 -m 8 {COSTS} --save {{folder}}/other.json',
    '''simulate 1f1b --pp 4 -m 8 --f 10.5 --i 10 --w 9 --p2p 0.4 --save {folder}/slower.json''',
]
PROFILE = '\n'.join(
    [f'node{n} -- Layer{n}(in_features=4096, out_features=4096) -- forward_compute_time={n * 1.25 + 1:.3f}, '
     f'backward_compute_time={n * 2.5 + 1:.3f}, activation_size={4096.0 * n}, parameter_size={123456.0 * n}'
     for n in range(1, 9)]
    + [f'\tnode{n} -- node{n + 1}' for n in range(1, 8)]
) + '\n'
MEASURED = ('run', 'calibrate')  # two runs differ, and so do their numbers
ESCAPE = re.compile(r'\x1b\[[0-9;?]*[A-Za-z]')
NUMBER = re.compile(r'(?<![\w.])\d+(?:\.\d+)?(?![\w.]*\d)')


def columns(text):
    """The columns that a line takes."""
    return sum(0 if unicodedata.combining(sign) else 2 if unicodedata.east_asian_width(sign) in 'WF' else 1
               for sign in text)


def on_terminal(command, width):
    """Returns what the command prints to a terminal of this width."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack('HHHH', 24, width, 0, 0))
    process = subprocess.Popen(command, stdout=slave, stderr=subprocess.PIPE)
    os.close(slave)
    parts = []
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        parts.append(part)
    errors = process.stderr.read().decode()
    os.close(master)
    if process.wait() not in (0, 1):
        sys.exit(f'{" ".join(command)} failed: {errors}')
    return ESCAPE.sub('', b''.join(parts).decode()).replace('\r', '')


def numbers(text):
    return set(NUMBER.findall(text))


def without_drawing(text):
    """A timeline's drawing, up to a blank line, has a cell per column of the terminal."""
    lines, drawn = [], False
    for line in text.splitlines():
        drawn = (drawn or '╷' in line) and line.strip() != ''
        if not drawn:
            lines.append(line)
    return '\n'.join(lines)


def find_faults(command, width, name):
    narrow = on_terminal(command, width)
    faults = [f'{columns(line)} columns: {line}' for line in narrow.splitlines() if columns(line) > width]
    if name in MEASURED or '--backend' in command or '--help' in command:
        return faults
    whole = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    known = numbers(whole)
    cut = [(number, other) for number in sorted(numbers(without_drawing(narrow)) - known) for other in sorted(known)
           if other != number and other.startswith(number)]
    return faults + [f'{number} may be the beginning of {other}' for number, other in cut]


def commands_of_help(binary):
    text = subprocess.run([binary, '--help'], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r'^  (\w+)  ', text, re.M))


def main():
    binary = sys.argv[1]
    count, faults = 0, [f'{name} is not run here' for name in commands_of_help(binary) - set(COMMANDS)]
    with tempfile.TemporaryDirectory() as folder:
        with open(f'{folder}/profile.txt', 'w') as file:
            file.write(PROFILE)
        for words in PREPARE:
            subprocess.run([binary, *words.format(folder=folder).split()], capture_output=True, check=True)
        for name, lines in COMMANDS.items():
            for line in [*lines, '--help']:
                command = [binary, name, *line.format(folder=folder).split()]
                for width in (80,) if line == '--help' else (80, 60):  # names of flags cannot be folded
                    count += 1
                    for fault in find_faults(command, width, name):
                        faults.append(f'{name} {line} at {width}: {fault}')
    print('\n'.join(faults) or f'{count} outputs fit their terminals')
    return 1 if faults else 0


if __name__ == '__main__':
    sys.exit(main())
