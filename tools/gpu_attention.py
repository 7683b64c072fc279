"""Times PyTorch's causal attention in bfloat16, cuDNN's and FlashAttention's, beside which ours is read (GpuSpeedOfLayers).

    gpu_attention.py      prints figures; status 77 if there is no PyTorch with a GPU

Four sequences of 2048 positions with 2048 columns, in heads 64 and 128 wide, as the test has them. Times are medians of
seven, each of twenty calls between two events.
"""

import statistics
import sys

try:
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
except ImportError as error:
    print(f"attention of PyTorch: not timed, {error}")
    sys.exit(77)

BATCH, POSITIONS, WIDTH, CALLS = 4, 2048, 2048, 20


def time_calls(call):
    times = []
    for _ in range(9):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(CALLS):
            call()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / CALLS)
    return statistics.median(times[2:])


def main():
    if not torch.cuda.is_available():
        print("attention of PyTorch: not timed, PyTorch sees no GPU")
        return 77
    print(f"PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}")
    for head_width in (64, 128):
        shape = (BATCH, WIDTH // head_width, POSITIONS, head_width)
        query, key, value = (torch.randn(shape, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
        gradient = torch.randn(shape, device="cuda", dtype=torch.bfloat16)
        flops = 4 * BATCH * POSITIONS * POSITIONS * WIDTH / 2
        for name, backend in (("cuDNN", SDPBackend.CUDNN_ATTENTION), ("FlashAttention", SDPBackend.FLASH_ATTENTION)):
            with sdpa_kernel(backend):
                attend = torch.nn.functional.scaled_dot_product_attention
                result = attend(query, key, value, is_causal=True)
                forward = time_calls(lambda: attend(query, key, value, is_causal=True))
                backward = time_calls(lambda: torch.autograd.grad(result, (query, key, value), gradient, retain_graph=True))
            heads = f"attention of {name} in PyTorch, heads {head_width} wide"
            print(f"figure: {heads}, Tflop/s: {flops / forward / 1e9:.2f}")
            print(f"figure: {heads}, gradient, Tflop/s: {2.5 * flops / backward / 1e9:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
