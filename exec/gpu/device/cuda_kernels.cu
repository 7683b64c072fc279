// Launches our kernels.
#include <algorithm>
#include <limits>

#include "exec/gpu/device/attention_kernel.cuh"
#include "exec/gpu/device/cuda_calls.cuh"
#include "exec/gpu/device/entry_kernels.cuh"
#include "exec/gpu/device/key_grad_kernel.cuh"
#include "exec/gpu/device/query_grad_kernel.cuh"
#include "exec/gpu/device/row_kernels.cuh"
#include "exec/gpu/device/update_kernels.cuh"

namespace bubblescope::exec {

namespace {

__device__ std::uint64_t read_global_timer() {
  std::uint64_t nanos = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanos));
  return nanos;
}

constexpr unsigned int kNapNanos = 200;  // nanoseconds

/// `stop` may be null. A single thread sleeps between two reads of the clock.
__global__ void spin_kernel(std::int64_t nanos, const volatile std::uint32_t* stop) {
  const std::uint64_t begin = read_global_timer();
  const auto wanted = static_cast<std::uint64_t>(nanos);
  while (read_global_timer() - begin < wanted) {
    if (stop != nullptr && *stop != 0) return;
    if (blockDim.x == 1) __nanosleep(kNapNanos);
  }
}

constexpr int kThreads = 256;
constexpr int kSpinThreads = 128;
constexpr std::int64_t kMaxBlocks = 4096;  // with more entries, each thread handles several

unsigned int blocks_for(std::int64_t entries) {
  return static_cast<unsigned int>(
      std::clamp<std::int64_t>((entries + kThreads - 1) / kThreads, 1, kMaxBlocks));
}

const char* spin(const BubblescopeSpin* order, void* stream) {
  const auto* const on = static_cast<CudaStream*>(stream);
  BUBBLESCOPE_CUDA(cudaSetDevice(on->device));
  const unsigned int blocks = order->blocks > 0 ? static_cast<unsigned int>(order->blocks) : 1;
  const unsigned int threads = order->blocks > 0 ? kSpinThreads : 1;
  cudaGetLastError();  // clears errors of earlier calls
  spin_kernel<<<blocks, threads, 0, on->stream>>>(order->nanos, order->stop);
  return check(cudaGetLastError(), "the launch of a spinning kernel");
}

/// Calls kernels with the fields of a launch.
template <class Value>
struct LaunchFields {
  explicit LaunchFields(const BubblescopeLaunch& launch)
      : target(static_cast<Value*>(launch.target)),
        rows(static_cast<unsigned int>(launch.rows)),
        columns(static_cast<int>(launch.columns)),
        period(static_cast<int>(launch.period)),
        key(static_cast<std::uint64_t>(launch.period)),
        count(launch.rows * launch.columns),
        attention(launch.attention),
        launch_(launch) {}

  const Value* input(int at) const { return static_cast<const Value*>(launch_.inputs[at]); }
  const float* floats(int at) const { return static_cast<const float*>(launch_.inputs[at]); }
  const std::int32_t* tokens() const { return static_cast<const std::int32_t*>(launch_.inputs[2]); }
  float* extra(int at) const { return static_cast<float*>(launch_.extra[at]); }
  float scalar(int at) const { return launch_.scalars[at]; }

  Value* target;
  unsigned int rows;
  int columns;
  int period;
  std::uint64_t key;
  std::int64_t count;
  AttentionGrid attention;

 private:
  const BubblescopeLaunch& launch_;
};

template <class Value>
void launch_attention(Kernel kernel, const LaunchFields<Value>& o, cudaStream_t stream) {
  const AttentionGrid& grid = o.attention;
  const AttentionBackward<Value> attention_inputs{o.input(0), o.input(1), o.input(2), o.floats(3)};
  const auto blocks_of = [&](std::int32_t rows) {
    return static_cast<unsigned int>(attention_blocks(grid, rows));
  };
  constexpr int kAttentionThreads = kAttentionWarps * kWarp;
  switch (kernel) {
    case Kernel::kAttention:
      attention_kernel<<<blocks_of(grid.count), kAttentionThreads, 0, stream>>>(
          o.target, o.extra(0), o.input(0), grid);
      return;
    case Kernel::kQueryGrad:
      query_grad_kernel<<<blocks_of(grid.count), kAttentionThreads, 0, stream>>>(
          o.target, o.extra(0), attention_inputs, grid);
      return;
    case Kernel::kKeyGrad:
      key_grad_kernel<<<blocks_of(grid.begin + grid.count), kAttentionThreads, 0, stream>>>(
          o.target, o.extra(0), attention_inputs, grid);
      return;
    default: return;
  }
}

template <class Value>
void launch_by_rows(Kernel kernel, const LaunchFields<Value>& o, cudaStream_t stream) {
  switch (kernel) {
    case Kernel::kEmbed:
      embed_kernel<<<o.rows, kThreads, 0, stream>>>(o.target, o.input(0), o.input(1), o.tokens(),
                                                    o.columns, o.period);
      return;
    case Kernel::kEmbedGrad:
      embed_grad_kernel<<<o.rows, kThreads, 0, stream>>>(o.extra(0), o.extra(1), o.input(0),
                                                         o.tokens(), o.columns, o.period);
      return;
    case Kernel::kNorm:
      norm_kernel<<<o.rows, kThreads, 0, stream>>>(o.target, o.input(0), o.input(1), o.columns);
      return;
    case Kernel::kNormGrad:
      norm_grad_kernel<<<o.rows, kThreads, 0, stream>>>(
          o.target, o.input(0), o.input(1), o.input(2), o.input(3), o.extra(0), o.columns);
      return;
    case Kernel::kCausalSoftmax:
      causal_softmax_kernel<<<o.rows, kThreads, 0, stream>>>(o.target, o.columns, o.period);
      return;
    case Kernel::kSoftmaxGrad:
      softmax_grad_kernel<<<o.rows, kThreads, 0, stream>>>(o.target, o.input(0), o.columns);
      return;
    case Kernel::kCrossEntropy:
      cross_entropy_kernel<<<o.rows, kThreads, 0, stream>>>(o.target, o.tokens(), o.extra(0),
                                                            o.columns);
      return;
    case Kernel::kCrossEntropyGrad:
      cross_entropy_grad_kernel<<<o.rows, kThreads, 0, stream>>>(
          o.target, o.tokens(), o.scalar(0) / static_cast<float>(o.rows), o.columns);
      return;
    default: return launch_attention(kernel, o, stream);
  }
}

template <class Value>
void launch_by_entries(Kernel kernel, const LaunchFields<Value>& o, cudaStream_t stream) {
  const unsigned int blocks = blocks_for(o.count);
  const AdamState adam{o.extra(1), o.extra(2), o.floats(1)};
  switch (kernel) {
    case Kernel::kGainGrad:
      gain_grad_kernel<<<(o.columns + kWarp - 1) / kWarp, kWarp * kGainRows, 0, stream>>>(
          o.extra(0), o.input(0), o.input(1), o.floats(2), static_cast<int>(o.rows), o.columns);
      return;
    case Kernel::kGelu:
      gelu_kernel<<<blocks, kThreads, 0, stream>>>(o.target, o.input(0), o.count);
      return;
    case Kernel::kGeluGrad:
      gelu_grad_kernel<<<blocks, kThreads, 0, stream>>>(o.target, o.input(0), o.input(1), o.count);
      return;
    case Kernel::kMean:
      mean_kernel<<<1, kThreads, 0, stream>>>(o.extra(0), o.floats(0), o.columns);
      return;
    case Kernel::kAdd:
      add_kernel<<<blocks, kThreads, 0, stream>>>(o.extra(0), o.floats(0), o.count);
      return;
    case Kernel::kScale:
      scale_kernel<<<blocks, kThreads, 0, stream>>>(o.extra(0), o.scalar(0), o.count);
      return;
    case Kernel::kSgd:
      sgd_kernel<<<blocks, kThreads, 0, stream>>>(o.extra(0), o.target, o.floats(0), o.scalar(0),
                                                  o.count);
      return;
    case Kernel::kAdam:
      adam_kernel<<<blocks, kThreads, 0, stream>>>(o.extra(0), o.target, o.floats(0), adam,
                                                   o.scalar(0), o.count);
      return;
    case Kernel::kDraw:
      draw_kernel<<<blocks, kThreads, 0, stream>>>(o.extra(0), o.target, o.key, o.scalar(0),
                                                   o.scalar(1), o.count);
      return;
    case Kernel::kAdamStep: adam_step_kernel<<<1, kWarp, 0, stream>>>(o.extra(0)); return;
    default: return launch_by_rows(kernel, o, stream);
  }
}

const char* launch(const BubblescopeLaunch* order, void* stream) {
  const auto* const on = static_cast<CudaStream*>(stream);
  if (order->kernel < 0 || order->kernel >= kKernels) return store_error("unknown kernel");
  if (order->rows <= 0 || order->columns <= 0 ||
      std::max(order->rows, order->columns) > std::numeric_limits<int>::max())
    return store_error("a kernel was requested for " + std::to_string(order->rows) + " x " +
                       std::to_string(order->columns) + " entries");
  if (order->attention.width > kMaxHeadWidth)
    return store_error("heads of attention are " + std::to_string(order->attention.width) +
                       " wide, more than " + std::to_string(kMaxHeadWidth));
  BUBBLESCOPE_CUDA(cudaSetDevice(on->device));
  cudaGetLastError();  // clears errors of earlier calls
  const auto kernel = static_cast<Kernel>(order->kernel);
  if (order->dtype == kBubblescopeBfloat16)
    launch_by_entries(kernel, LaunchFields<Bfloat16>(*order), on->stream);
  else
    launch_by_entries(kernel, LaunchFields<float>(*order), on->stream);
  const std::string name = "the launch of kernel " + std::to_string(order->kernel);
  return check(cudaGetLastError(), name.c_str());
}

}  // namespace

void add_kernel_calls(BubblescopeGpu& calls) {
  calls.spin = spin;
  calls.launch = launch;
}

}  // namespace bubblescope::exec
