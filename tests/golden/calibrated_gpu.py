"""Calibrates the simulated device for models, and predicts a step with the file. The device multiplies at one rate, 2 FLOPs in
0.05 ns on one of 132 multiprocessors, and copies in 2 us and 0.05 ns per byte.

    calibrated_gpu.py BUBBLESCOPE MODULE
"""

import json
import os
import subprocess
import sys
import tempfile

PROGRAM, MODULE = sys.argv[1:]
TERAFLOPS = 2 / (0.05e-9 / 132) / 1e12
COPIED = 2 / 0.05 / 0.9  # GB/s: read and written, and nine tenths of what is stated are reached


def run(*arguments):
    environment = {**os.environ, 'BUBBLESCOPE_CUDA_MODULE': MODULE}
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        sys.exit(f'{arguments}: status {done.returncode}\n{done.stdout}{done.stderr}')
    return done.stdout


def simulate(device):
    step = '1f1b --pp 4 -m 8 --model llama3-8b --recompute full --format json --gpu'.split()
    return json.loads(run('simulate', *step, device))


def expect(holds, what):
    if not holds:
        sys.exit(what)


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'my_gpu.json')
        run('calibrate', '--gpu', 'h100', '--backend', 'cuda', '--seconds', '0.5', '-o', path)
        with open(path) as file:
            device = json.load(file)
        expect(device['like'] == 'h100' and 'peak_teraflops' not in device, device)
        rates = [gemm['teraflops'] for gemm in device['gemms']]
        expect(len(rates) == 99, f'{len(rates)} GEMMs')
        expect(all(abs(rate / TERAFLOPS - 1) < 0.02 for rate in rates), f'{min(rates)} to {max(rates)}, not {TERAFLOPS}')
        expect(abs(device['memory_gigabytes_per_second'] / COPIED - 1) < 0.01, device['memory_gigabytes_per_second'])
        expect(abs(device['host']['gigabytes_per_second'] - 20) < 0.1, device['host'])
        mine, preset = simulate(path), simulate('h100')
        # GEMMs are most of the preset's step, which sustains 640 TFLOP/s at best; attention's rate is the preset's.
        slower = mine['makespan_ns'] / preset['makespan_ns']
        expect(0.5 < slower / (640 / TERAFLOPS) < 1, f'{slower} times slower')
        expect(mine['interval'] is None and 'its GEMMs' in mine['no_interval'], mine['no_interval'])
    print(f'99 GEMMs at {rates[0]:.3f} TFLOP/s; the step takes {slower:.0f} times that of the preset')


main()
