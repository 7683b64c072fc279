"""The convolutional networks that torchgpipe was measured on, module by module: FLOPs and bytes of a sample.

Written after the networks' definitions in kakaobrain/torchgpipe, benchmarks/models; what a module computes and
moves follows from its shapes alone.
"""


class Module:
    """One module of a sequence, for one sample in 32 bits: FLOPs of its forward (its backward has twice as many), bytes that
    its forward and its backward move, and, where a network sets it, what it hands to the next one."""

    def __init__(self, flops=0, forward_bytes=0, backward_bytes=0, parameters=0):
        self.flops, self.forward_bytes, self.backward_bytes, self.parameters = (
            flops,
            forward_bytes,
            backward_bytes,
            parameters,
        )
        self.handed_on = 0

    def __add__(self, other):
        return Module(
            self.flops + other.flops,
            self.forward_bytes + other.forward_bytes,
            self.backward_bytes + other.backward_bytes,
            self.parameters + other.parameters,
        )


def joined(modules):
    return sum(modules, Module())


def handing_on(module, size_in_bytes):
    module.handed_on = size_in_bytes
    return module


def numbers(channels, size):
    """Bytes of an image with so many channels."""
    return 4 * channels * size * size


def convolution(inputs, outputs, kernel, size, stride=1):
    """`kernel` is the number of weights of a filter: 9 of a 3 x 3; `size` is that of the input."""
    weights = inputs * outputs * kernel
    return Module(2 * weights * (size // stride) ** 2, 0, 0, weights)


def norm(channels, size):
    """Statistics and result: x twice, y once; back: x and dy twice, dx once."""
    return Module(0, 3 * numbers(channels, size), 5 * numbers(channels, size), 2 * channels)


def activation(channels, size):
    return Module(0, 2 * numbers(channels, size), 3 * numbers(channels, size))


def moved(channels, size):
    """A dropout of channels, a concatenation, a pool without stride: read and written."""
    return Module(0, 2 * numbers(channels, size), 2 * numbers(channels, size))


def unet(convolutions=5, channels=64, depth=5, size=192):
    """Modules of U-Net (B, C). What skips go from encoder to decoder beside the sequence."""
    modules = []

    def add(module, width, size):
        modules.append(handing_on(module, numbers(width, size)))

    def stack(inputs, hidden, outputs, size):
        widths = [inputs] + [hidden] * (convolutions - 1) + [outputs]
        for before, after in zip(widths, widths[1:]):
            for module in (
                convolution(before, after, 9, size),
                moved(after, size),
                norm(after, size),
                activation(after, size),
            ):
                add(module, after, size)

    for level in range(depth):
        width, here = channels << level, size >> level
        stack(3 if level == 0 else width // 2, width, width, here)
        add(Module(), width, here)
        add(Module(0, 1.25 * numbers(width, here), 1.25 * numbers(width, here)), width, here // 2)
    stack(channels << depth - 1, channels << depth, channels << depth - 1, size >> depth)
    for level in reversed(range(depth)):
        width, here = channels << level, size >> level
        add(Module(0, 1.25 * numbers(width, here), 1.25 * numbers(width, here)), width, here)
        add(moved(2 * width, here), 2 * width, here)
        stack(2 * width, width // 2, width // 2, here)
    add(convolution(channels // 2, 1, 1, size), 1, size)
    return modules


def resnet101():
    """The stem, 33 blocks of 11 modules, and the head. Inside a block its input is handed on too."""
    modules = []

    def add(module, size_in_bytes):
        modules.append(handing_on(module, size_in_bytes))

    for module in (convolution(3, 64, 49, 224, 2), norm(64, 112), activation(64, 112)):
        add(module, numbers(64, 112))
    add(Module(0, 1.25 * numbers(64, 112), 1.25 * numbers(64, 112)), numbers(64, 56))
    inputs, size = 64, 56
    for planes, blocks in ((64, 3), (128, 4), (256, 23), (512, 3)):
        for block in range(blocks):
            stride = 2 if block == 0 and planes > 64 else 1
            before, size = size, size // stride
            entry, outputs = numbers(inputs, before), 4 * planes
            add(Module(), 2 * entry)
            for module in (convolution(inputs, planes, 1, before), norm(planes, before), activation(planes, before)):
                add(module, numbers(planes, before) + entry)
            for module in (
                convolution(planes, planes, 9, before, stride),
                norm(planes, size),
                activation(planes, size),
            ):
                add(module, numbers(planes, size) + entry)
            for module in (convolution(planes, outputs, 1, size), norm(outputs, size)):
                add(module, numbers(outputs, size) + entry)
            shortcut = convolution(inputs, outputs, 1, before, stride) + norm(outputs, size) if block == 0 else Module()
            add(shortcut + Module(0, 3 * numbers(outputs, size)), numbers(outputs, size))
            add(activation(outputs, size), numbers(outputs, size))
            inputs = outputs
    add(Module(), 4 * inputs)
    add(Module(), 4 * inputs)
    add(Module(2 * inputs * 1000, 0, 0, inputs * 1000 + 1000), 4000)
    return modules


# AmoebaNet-D: for each of the ten operations of a cell, the state that it reads and its kind.
NORMAL = (
    (1, '1x1'),
    (1, 'pool'),
    (1, 'none'),
    (0, '1x7'),
    (0, '1x1'),
    (0, '1x7'),
    (2, 'pool'),
    (2, 'none'),
    (1, 'pool'),
    (5, '1x1'),
)
REDUCTION = (
    (0, 'pool'),
    (0, 'pool'),
    (2, 'none'),
    (1, '3x3'),
    (2, '1x7'),
    (2, 'pool'),
    (3, 'none'),
    (1, 'pool'),
    (2, 'pool'),
    (3, '1x1'),
)


def relu_convolution_norm(inputs, outputs, kernel, size, stride=1):
    return activation(inputs, size) + convolution(inputs, outputs, kernel, size, stride) + norm(outputs, size // stride)


def operation(what, channels, size, stride):
    """One operation of a cell."""
    quarter = channels // 4
    through = lambda *kernels: (
        relu_convolution_norm(channels, quarter, 1, size)
        + joined(
            relu_convolution_norm(
                quarter, quarter, kernel, size if at == 0 else size // stride, stride if at == 0 else 1
            )
            for at, kernel in enumerate(kernels)
        )
        + relu_convolution_norm(quarter, channels, 1, size // stride)
    )
    if what == '1x1':
        return relu_convolution_norm(channels, channels, 1, size, stride)
    if what == 'pool':
        return moved(channels, size)
    if what == '1x7':
        return through(7, 7)
    if what == '3x3':
        return through(9)
    return relu_convolution_norm(channels, channels, 1, size, stride) if stride > 1 else Module()


def amoebanet_d(layers=18, filters=256, size=224):
    """Stems, cells, classifier: 24 modules of AmoebaNet-D (18, 256)."""
    channels = before_last = last = filters // 4
    size //= 2
    modules = [handing_on(convolution(3, channels, 9, 2 * size, 2) + norm(channels, size), numbers(channels, size))]
    after_reduction = False

    def cell(reduction):
        nonlocal before_last, last, after_reduction, size
        stride = 2 if reduction else 1
        skip = numbers(last, size)  # a cell's input is handed on beside its output
        sum_of = relu_convolution_norm(last, channels, 1, size)
        if after_reduction:
            sum_of += relu_convolution_norm(before_last, channels, 1, 2 * size, 2)
        elif before_last != channels:
            sum_of += relu_convolution_norm(before_last, channels, 1, size)
        for at, (state, what) in enumerate(REDUCTION if reduction else NORMAL):
            sum_of += operation(
                what, channels, size if state < 2 else size // stride, stride if reduction and state < 2 else 1
            )
            sum_of += Module(0, 1.5 * numbers(channels, size // stride), 0)  # two at a time are added
        size //= stride
        joined_states = 3 if reduction else 4
        output = numbers(joined_states * channels, size)
        modules.append(handing_on(sum_of + moved(joined_states * channels, size), output + skip))
        before_last, last, after_reduction = last, joined_states * channels, reduction

    for _ in range(2):
        channels *= 2
        cell(True)
    for group in range(3):
        if group > 0:
            channels *= 2
            cell(True)
        for _ in range(layers // 3):
            cell(False)
    return modules + [Module(2 * last * 1000, numbers(last, size), numbers(last, size), last * 1000 + 1000)]
