// Launches our kernels.
#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <type_traits>
#include <variant>

#include "exec/gpu/device/attention_kernel.cuh"
#include "exec/gpu/device/cuda_calls.cuh"
#include "exec/gpu/device/entry_kernels.cuh"
#include "exec/gpu/device/fragment_attention_kernel.cuh"
#include "exec/gpu/device/fragment_key_grad_kernel.cuh"
#include "exec/gpu/device/fragment_query_grad_kernel.cuh"
#include "exec/gpu/device/key_grad_kernel.cuh"
#include "exec/gpu/device/query_grad_kernel.cuh"
#include "exec/gpu/device/row_kernels.cuh"
#include "exec/gpu/device/short_softmax_kernel.cuh"
#include "exec/gpu/device/softmax_kernels.cuh"
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
constexpr int kAttentionThreads = kAttentionWarps * kWarp;
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

/// Launches the kernel of each type of arguments. `Value` is the launch's dtype.
template <class Value>
class KernelLauncher {
 public:
  KernelLauncher(const KernelLaunch& launch, cudaStream_t stream)
      : rows_(static_cast<unsigned int>(launch.rows)),
        columns_(static_cast<int>(launch.columns)),
        count_(launch.rows * launch.columns),
        blocks_(blocks_for(count_)),
        stream_(stream) {}

  void operator()(const EmbedArguments& a) const {
    embed_kernel<<<rows_, kThreads, 0, stream_>>>(to(a.target), from(a.embedding), from(a.position),
                                                  a.tokens, columns_, static_cast<int>(a.period));
  }
  void operator()(const EmbedGradArguments& a) const {
    const int tiles = (columns_ + kThreads - 1) / kThreads;
    embed_grad_kernel<<<tiles * kEmbedParts, kThreads, 0, stream_>>>(
        a.embedding_grad, a.position_grad, from(a.grad), a.tokens, static_cast<int>(rows_), columns_,
        static_cast<int>(a.period));
  }
  void operator()(const NormArguments& a) const {
    with_chunks({a.target, a.input, a.gain}, [&](auto count) {
      norm_kernel<count><<<rows_, kThreads, 0, stream_>>>(to(a.target), from(a.input), from(a.gain),
                                                          columns_);
    });
  }
  void operator()(const NormGradArguments& a) const {
    with_chunks({a.target, a.input, a.gain, a.grad, a.added}, [&](auto count) {
      norm_grad_kernel<count><<<rows_, kThreads, 0, stream_>>>(
          to(a.target), from(a.input), from(a.gain), from(a.grad), from(a.added), a.inverses,
          columns_);
    });
  }
  void operator()(const GainGradArguments& a) const {
    gain_grad_kernel<<<(columns_ + kWarp - 1) / kWarp, kWarp * kGainRows, 0, stream_>>>(
        a.gain_grad, from(a.input), from(a.grad), a.inverses, static_cast<int>(rows_), columns_);
  }
  void operator()(const CausalSoftmaxArguments& a) const {
    const int period = static_cast<int>(a.period);
    with_chunks({a.scores}, [&](auto count) {
      with_short_row<count>(
          [&](auto chunks) {
            constexpr int kRowsOfBlock = kThreads / kWarp;
            const unsigned int blocks = (rows_ + kRowsOfBlock - 1) / kRowsOfBlock;
            short_causal_softmax_kernel<count, chunks><<<blocks, kThreads, 0, stream_>>>(
                to(a.scores), static_cast<int>(rows_), columns_, period);
          },
          [&] {
            causal_softmax_kernel<count>
                <<<rows_, kThreads, 0, stream_>>>(to(a.scores), columns_, period);
          });
    });
  }
  void operator()(const SoftmaxGradArguments& a) const {
    with_chunks({a.grad, a.weights}, [&](auto count) {
      softmax_grad_kernel<count>
          <<<rows_, kThreads, 0, stream_>>>(to(a.grad), from(a.weights), columns_);
    });
  }
  void operator()(const GeluArguments& a) const {
    gelu_kernel<<<blocks_, kThreads, 0, stream_>>>(to(a.target), from(a.input), count_);
  }
  void operator()(const GeluGradArguments& a) const {
    gelu_grad_kernel<<<blocks_, kThreads, 0, stream_>>>(to(a.target), from(a.input), from(a.grad),
                                                        count_);
  }
  void operator()(const CrossEntropyArguments& a) const {
    with_chunks({a.logits}, [&](auto count) {
      cross_entropy_kernel<count>
          <<<rows_, kThreads, 0, stream_>>>(to(a.logits), a.tokens, a.losses, columns_);
    });
  }
  void operator()(const CrossEntropyGradArguments& a) const {
    with_chunks({a.probabilities}, [&](auto count) {
      cross_entropy_grad_kernel<count><<<rows_, kThreads, 0, stream_>>>(
          to(a.probabilities), a.tokens, a.scale / static_cast<float>(rows_), columns_);
    });
  }
  void operator()(const AttentionArguments& a) const {
    if constexpr (kIsHalf)
      with_width(a.grid, [&](auto width) {
        using Shape = ForwardShape<width>;
        launch_fragments<Shape, ForwardParts<Shape>>(fragment_attention_kernel<Shape>, a.grid,
                                                     a.grid.count, to(a.mixed), a.logs,
                                                     from(a.qkv));
      });
    else
      attention_kernel<<<blocks_of(a.grid, a.grid.count), kAttentionThreads, 0, stream_>>>(
          to(a.mixed), a.logs, from(a.qkv), a.grid);
  }
  void operator()(const QueryGradArguments& a) const {
    if constexpr (kIsHalf)
      with_width(a.grid, [&](auto width) {
        using Shape = QueryGradShape<width>;
        launch_fragments<Shape, QueryGradParts<Shape>>(fragment_query_grad_kernel<Shape>, a.grid,
                                                       a.grid.count, to(a.qkv_grad), a.dots,
                                                       inputs_of(a));
      });
    else
      query_grad_kernel<<<blocks_of(a.grid, a.grid.count), kAttentionThreads, 0, stream_>>>(
          to(a.qkv_grad), a.dots, inputs_of(a), a.grid);
  }
  void operator()(const KeyGradArguments& a) const {
    const std::int32_t keys = a.grid.begin + a.grid.count;
    if constexpr (kIsHalf)
      with_width(a.grid, [&](auto width) {
        using Shape = KeyGradShape<width>;
        launch_fragments<Shape, KeyGradParts<Shape>>(fragment_key_grad_kernel<Shape>, a.grid, keys,
                                                     to(a.qkv_grad), a.dots, inputs_of(a));
      });
    else
      key_grad_kernel<<<blocks_of(a.grid, keys), kAttentionThreads, 0, stream_>>>(
          to(a.qkv_grad), a.dots, inputs_of(a), a.grid);
  }
  void operator()(const MeanArguments& a) const {
    mean_kernel<<<1, kThreads, 0, stream_>>>(a.mean, a.values, columns_);
  }
  void operator()(const AddArguments& a) const {
    add_kernel<<<blocks_, kThreads, 0, stream_>>>(a.sum, a.values, count_);
  }
  void operator()(const ScaleArguments& a) const {
    scale_kernel<<<blocks_, kThreads, 0, stream_>>>(a.values, a.factor, count_);
  }
  void operator()(const SgdArguments& a) const {
    sgd_kernel<<<blocks_, kThreads, 0, stream_>>>(a.weights, to(a.copy), a.grad, a.learning_rate,
                                                  count_);
  }
  void operator()(const AdamArguments& a) const {
    adam_kernel<<<blocks_, kThreads, 0, stream_>>>(a.weights, to(a.copy), a.grad,
                                                   AdamState{a.mean, a.square, a.steps},
                                                   a.learning_rate, count_);
  }
  void operator()(const AdamStepArguments& a) const {
    adam_step_kernel<<<1, kWarp, 0, stream_>>>(a.steps);
  }
  void operator()(const DrawArguments& a) const {
    draw_kernel<<<blocks_, kThreads, 0, stream_>>>(a.weights, to(a.copy), a.key, a.scale, a.offset,
                                                   count_);
  }

 private:
  static Value* to(void* entries) { return static_cast<Value*>(entries); }
  static const Value* from(const void* entries) { return static_cast<const Value*>(entries); }
  static constexpr bool kIsHalf = std::is_same_v<Value, Bfloat16>;

  /// Calls the launch with the number of columns that a thread can handle at once: all rows of these
  /// matrices must begin at multiples of 16 bytes.
  template <class Launch>
  void with_chunks(std::initializer_list<const void*> matrices, const Launch& launch) const {
    std::uintptr_t addresses = 0;
    for (const void* const matrix : matrices)
      addresses |= reinterpret_cast<std::uintptr_t>(matrix);
    if (columns_ % kWideChunk<Value> == 0 && addresses % 16 == 0)
      return launch(std::integral_constant<int, kWideChunk<Value>>());
    launch(std::integral_constant<int, 1>());
  }
  /// Calls `one` with the number of chunks per lane in which a warp holds a row. More than 8 would
  /// not stay in registers: calls `other`.
  template <int kCount, class Short, class Long>
  void with_short_row(const Short& one, const Long& other) const {
    if constexpr (kCount == 1) {
      other();
    } else {
      if (columns_ > kShortRow<kCount, 8>) return other();
      if (columns_ <= kShortRow<kCount, 4>) return one(std::integral_constant<int, 4>());
      one(std::integral_constant<int, 8>());
    }
  }
  /// Calls the launch with the narrowest kernel for the width of a head.
  template <class Launch>
  static void with_width(const AttentionGrid& grid, const Launch& launch) {
    if (grid.width <= 32) return launch(std::integral_constant<int, 32>());
    if (grid.width <= 64) return launch(std::integral_constant<int, 64>());
    launch(std::integral_constant<int, kMaxHeadWidth>());
  }
  /// Blocks get shared memory for their parts. More than 48 KiB must be allowed on every device; an
  /// error of that is found after the launch, as its own.
  template <class Shape, class Parts, class Kernel, class... Arguments>
  void launch_fragments(Kernel* kernel, const AttentionGrid& grid, std::int32_t rows,
                        const Arguments&... arguments) const {
    const auto blocks = static_cast<unsigned int>(fragment_blocks(grid, rows, Shape::kBlockRows));
    constexpr int kBytes = sizeof(Parts);
    if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes) !=
        cudaSuccess)
      return;
    kernel<<<blocks, Shape::kThreads, kBytes, stream_>>>(arguments..., grid);
  }
  static unsigned int blocks_of(const AttentionGrid& grid, std::int32_t rows) {
    return static_cast<unsigned int>(attention_blocks(grid, rows));
  }
  static AttentionBackward<Value> inputs_of(const QueryGradArguments& a) {
    return {from(a.qkv), from(a.mixed), from(a.mixed_grad), a.logs};
  }

  unsigned int rows_;
  int columns_;
  std::int64_t count_;
  unsigned int blocks_;
  cudaStream_t stream_;
};

/// Returns the width of a head; 0 for kernels without heads.
std::int32_t head_width(const KernelArguments& arguments) {
  return std::visit(
      [](const auto& a) {
        if constexpr (requires { a.grid; })
          return a.grid.width;
        else
          return 0;
      },
      arguments);
}

const char* launch(const KernelLaunch* order, void* stream) {
  const auto* const on = static_cast<CudaStream*>(stream);
  if (order->rows <= 0 || order->columns <= 0 ||
      std::max(order->rows, order->columns) > std::numeric_limits<int>::max())
    return store_error("a kernel was requested for " + std::to_string(order->rows) + " x " +
                       std::to_string(order->columns) + " entries");
  if (const std::int32_t width = head_width(order->arguments); width > kMaxHeadWidth)
    return store_error("heads of attention are " + std::to_string(width) + " wide, more than " +
                       std::to_string(kMaxHeadWidth));
  BUBBLESCOPE_CUDA(cudaSetDevice(on->device));
  cudaGetLastError();  // clears errors of earlier calls
  if (order->dtype == kBubblescopeBfloat16)
    std::visit(KernelLauncher<Bfloat16>(*order, on->stream), order->arguments);
  else
    std::visit(KernelLauncher<float>(*order, on->stream), order->arguments);
  const cudaError_t status = cudaGetLastError();
  if (status == cudaSuccess) return nullptr;
  const std::string name = "the launch of kernel " + std::to_string(order->arguments.index());
  return check(status, name.c_str());
}

}  // namespace

void add_kernel_calls(BubblescopeGpu& calls) {
  calls.spin = spin;
  calls.launch = launch;
}

}  // namespace bubblescope::exec
