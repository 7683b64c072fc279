// Times kernels with events.
#include "exec/gpu/host/gpu_bench.h"

#include <algorithm>

#include "exec/gpu/host/gpu_machine.h"
#include "exec/gpu/kernels.h"

namespace bubblescope::exec {

namespace {

constexpr std::int64_t kBytesPerEntry = 2;
constexpr std::int64_t kBytesPerGradient = 4;

/// Device memory that grows to the largest use.
struct Buffer {
  GpuHandle memory;
  Bytes bytes = 0;
};

class GpuBench : public KernelBench {
 public:
  explicit GpuBench(const BubblescopeGpu& calls)
      : machine_(calls, 1, Share::kStreams),
        gpu_(machine_.gpu()),
        device_(machine_.place(0).device),
        stream_(gpu_.create_stream(device_, nullptr)),
        blas_(gpu_.create_blas_handle(machine_.place(0))),
        begin_(gpu_.create_event(device_, EventUse::kTimed)),
        end_(gpu_.create_event(device_, EventUse::kTimed)) {
    const BubblescopeDevice first = gpu_.devices().front();
    device = describe_devices({first});
    memory = first.memory_bytes;
  }

  Nanos run_gemm(const GemmShape& shape, std::int64_t times) override {
    const BubblescopeGemm gemm = gemm_of(shape);
    return time(times, [&] { gpu_.multiply(blas_, gemm, stream_.get()); });
  }

  Nanos run_copy(Bytes bytes, std::int64_t times) override {
    void* const from = fill(first_, bytes);
    void* const to = fill(second_, bytes);
    return time(times,
                [&] { gpu_.copy(to, from, static_cast<std::size_t>(bytes), stream_.get()); });
  }

 private:
  template <class Enqueue>
  Nanos time(std::int64_t times, const Enqueue& enqueue) {
    gpu_.await_device(device_);
    gpu_.record(begin_, stream_);
    for (std::int64_t at = 0; at < times; ++at) enqueue();
    gpu_.record(end_, stream_);
    gpu_.await_device(device_);
    return gpu_.elapsed(begin_, end_);
  }

  /// The buffer's memory, with random numbers in all of it: a device that multiplies zeros needs
  /// less power, and is faster.
  void* fill(Buffer& buffer, Bytes bytes) {
    if (bytes <= buffer.bytes) return buffer.memory.get();
    buffer.memory.reset();
    buffer.memory = gpu_.allocate(device_, static_cast<std::size_t>(bytes));
    buffer.bytes = bytes;
    const DrawArguments draw{nullptr, buffer.memory.get(), 0, 1, 0};
    gpu_.launch({kBubblescopeBfloat16, 1, bytes / kBytesPerEntry, draw}, stream_.get());
    return buffer.memory.get();
  }

  BubblescopeGemm gemm_of(const GemmShape& shape) {
    const auto rows = static_cast<std::int32_t>(shape.rows);
    const auto inputs = static_cast<std::int32_t>(shape.inputs);
    const auto outputs = static_cast<std::int32_t>(shape.outputs);
    void* const input = fill(first_, kBytesPerEntry * rows * inputs);
    void* const output = fill(second_, kBytesPerEntry * rows * outputs);
    const bool is_weight_grad = shape.pass == GemmPass::kWeightGrad;
    void* const weight =
        fill(third_, (is_weight_grad ? kBytesPerGradient : kBytesPerEntry) * inputs * outputs);
    const auto make_gemm = [](std::int32_t m, std::int32_t n, std::int32_t k,
                              BubblescopeOperand left, BubblescopeOperand right, void* target) {
      BubblescopeGemm gemm{};
      gemm.rows = m, gemm.columns = n, gemm.k = k, gemm.batch = 1;
      gemm.left = left, gemm.right = right, gemm.target = target, gemm.target_stride = n;
      gemm.scale = 1;
      gemm.dtype = gemm.target_dtype = kBubblescopeBfloat16;
      return gemm;
    };
    switch (shape.pass) {
      case GemmPass::kForward:
        return make_gemm(rows, outputs, inputs, {input, inputs, 0, 0}, {weight, inputs, 0, 1},
                         output);
      case GemmPass::kInputGrad:
        return make_gemm(rows, inputs, outputs, {output, outputs, 0, 0}, {weight, inputs, 0, 0},
                         input);
      case GemmPass::kWeightGrad: break;
    }
    BubblescopeGemm gemm =
        make_gemm(outputs, inputs, rows, {output, outputs, 0, 1}, {input, inputs, 0, 0}, weight);
    gemm.source = weight;
    gemm.target_dtype = kBubblescopeFloat32;
    return gemm;
  }

  GpuMachine machine_;
  const GpuRuntime& gpu_;
  std::int32_t device_;
  GpuHandle stream_;
  GpuHandle blas_;
  GpuHandle begin_;
  GpuHandle end_;
  Buffer first_;
  Buffer second_;
  Buffer third_;
};

}  // namespace

std::unique_ptr<KernelBench> open_gpu_bench(const BubblescopeGpu& calls) {
  return std::make_unique<GpuBench>(calls);
}

}  // namespace bubblescope::exec
