// Runs the source of the kernels thread by thread. The symbols of this file are hidden, because the
// module has functions of the same names that launch kernels.
#include "tests/fake_cuda/kernels.h"

#include <cxxabi.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <tuple>
#include <type_traits>

#include "tests/fake_cuda/memory.h"
#include "tests/fake_cuda/refuse.h"
#include "tests/support/emulated_block.h"
// The kernels need the CUDA emulation above.
#include "exec/gpu/device/attention_kernel.cuh"
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

namespace bubblescope::tests::fake_cuda {

namespace {

using Kernels = std::map<std::string, BindKernel>;

template <class Argument>
void expect_usable(const Argument& argument, const LaunchShape& shape, const std::string& name) {
  if constexpr (std::is_pointer_v<Argument>) expect_reachable(argument, shape.device, name);
}

template <class... Arguments, std::size_t... at>
std::tuple<Arguments...> copy_arguments(void** arguments, std::index_sequence<at...>) {
  return {*static_cast<Arguments*>(arguments[at])...};
}

/// Returns "(float*, int)" for a kernel of this type.
template <class... Arguments>
std::string types_of(void (*)(Arguments...)) {
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(typeid(void(Arguments...)).name(), nullptr, nullptr, nullptr),
      &std::free);
  return std::string(name.get()).substr(std::string("void ").size());
}

/// `shared_bytes`: what launches must ask for.
template <class... Arguments>
void add(Kernels& kernels, const std::string& name, void (*kernel)(Arguments...),
         std::size_t shared_bytes = 0) {
  kernels[name + types_of(kernel)] = [kernel, name, shared_bytes](void** arguments,
                                                                  const LaunchShape& shape) {
    if (shape.shared_bytes != shared_bytes)
      refuse(name + " needs " + std::to_string(shared_bytes) + " bytes of shared memory, not " +
             std::to_string(shape.shared_bytes));
    const auto copied =
        copy_arguments<Arguments...>(arguments, std::index_sequence_for<Arguments...>());
    std::apply([&](const auto&... each) { (expect_usable(each, shape, name), ...); }, copied);
    return Task{name, [=] {
                  emulate(shape.blocks, shape.threads, FiberOrder::kUp,
                          [&] { std::apply(kernel, copied); });
                }};
  };
}

template <class Value>
void add_all_of(Kernels& kernels, const std::string& value) {
  add(kernels, "embed_kernel" + value, exec::embed_kernel<Value>);
  add(kernels, "embed_grad_kernel" + value, exec::embed_grad_kernel<Value>);
  add(kernels, "gain_grad_kernel" + value, exec::gain_grad_kernel<Value>);
  add(kernels, "gelu_kernel" + value, exec::gelu_kernel<Value>);
  add(kernels, "gelu_grad_kernel" + value, exec::gelu_grad_kernel<Value>);
  add(kernels, "draw_kernel" + value, exec::draw_kernel<Value>);
  add(kernels, "sgd_kernel" + value, exec::sgd_kernel<Value>);
  add(kernels, "adam_kernel" + value, exec::adam_kernel<Value>);
}

template <int kCount, class Value>
void add_rows_of(Kernels& kernels, const std::string& value) {
  const std::string of = "<" + std::to_string(kCount) + ", " + value + ">";
  add(kernels, "norm_kernel" + of, exec::norm_kernel<kCount, Value>);
  add(kernels, "norm_grad_kernel" + of, exec::norm_grad_kernel<kCount, Value>);
  add(kernels, "causal_softmax_kernel" + of, exec::causal_softmax_kernel<kCount, Value>);
  add(kernels, "softmax_grad_kernel" + of, exec::softmax_grad_kernel<kCount, Value>);
  add(kernels, "cross_entropy_kernel" + of, exec::cross_entropy_kernel<kCount, Value>);
  add(kernels, "cross_entropy_grad_kernel" + of, exec::cross_entropy_grad_kernel<kCount, Value>);
}

template <int kCount, int kChunks, class Value>
void add_short_rows_of(Kernels& kernels, const std::string& value) {
  const std::string of =
      "<" + std::to_string(kCount) + ", " + std::to_string(kChunks) + ", " + value + ">";
  add(kernels, "short_causal_softmax_kernel" + of,
      exec::short_causal_softmax_kernel<kCount, kChunks, Value>);
}

template <int kWidth>
void add_fragments_of(Kernels& kernels) {
  using Forward = exec::ForwardShape<kWidth>;
  using QueryGrad = exec::QueryGradShape<kWidth>;
  using KeyGrad = exec::KeyGradShape<kWidth>;
  const auto of = [](const std::string& shape) {
    return "<bubblescope::exec::" + shape + "<" + std::to_string(kWidth) + "> >";
  };
  add(kernels, "fragment_attention_kernel" + of("ForwardShape"),
      exec::fragment_attention_kernel<Forward>, sizeof(exec::ForwardParts<Forward>));
  add(kernels, "fragment_query_grad_kernel" + of("QueryGradShape"),
      exec::fragment_query_grad_kernel<QueryGrad>, sizeof(exec::QueryGradParts<QueryGrad>));
  add(kernels, "fragment_key_grad_kernel" + of("KeyGradShape"),
      exec::fragment_key_grad_kernel<KeyGrad>, sizeof(exec::KeyGradParts<KeyGrad>));
}

/// All threads of a spin wait for the same, so the engine waits instead of them.
Task bind_spin(void** arguments, const LaunchShape& shape) {
  const auto nanos = *static_cast<const std::int64_t*>(arguments[0]);
  const auto* const stop = *static_cast<const volatile std::uint32_t* const*>(arguments[1]);
  expect_usable(const_cast<const std::uint32_t*>(stop), shape, "spin_kernel");
  return {"spin_kernel", {}, Spin{nanos, stop}};
}

Kernels make_kernels() {
  Kernels kernels;
  add_all_of<float>(kernels, "<float>");
  add_all_of<exec::Bfloat16>(kernels, "<bubblescope::exec::Bfloat16>");
  add(kernels, "attention_kernel<float>", exec::attention_kernel<float>);
  add(kernels, "query_grad_kernel<float>", exec::query_grad_kernel<float>);
  add(kernels, "key_grad_kernel<float>", exec::key_grad_kernel<float>);
  add_rows_of<1, float>(kernels, "float");
  add_rows_of<4, float>(kernels, "float");
  add_rows_of<1, exec::Bfloat16>(kernels, "bubblescope::exec::Bfloat16");
  add_rows_of<8, exec::Bfloat16>(kernels, "bubblescope::exec::Bfloat16");
  add_short_rows_of<4, 4, float>(kernels, "float");
  add_short_rows_of<4, 8, float>(kernels, "float");
  add_short_rows_of<8, 4, exec::Bfloat16>(kernels, "bubblescope::exec::Bfloat16");
  add_short_rows_of<8, 8, exec::Bfloat16>(kernels, "bubblescope::exec::Bfloat16");
  add_fragments_of<32>(kernels);
  add_fragments_of<64>(kernels);
  add_fragments_of<128>(kernels);
  add(kernels, "mean_kernel", exec::mean_kernel);
  add(kernels, "add_kernel", exec::add_kernel);
  add(kernels, "scale_kernel", exec::scale_kernel);
  add(kernels, "adam_step_kernel", exec::adam_step_kernel);
  kernels["spin_kernel(long, unsigned int const volatile*)"] = bind_spin;
  return kernels;
}

}  // namespace

const BindKernel& find_kernel(const std::string& signature) {
  static const Kernels kernels = make_kernels();
  const auto at = kernels.find(signature);
  if (at == kernels.end())
    refuse("a kernel that tests/fake_cuda/kernels.cc does not name: " + signature);
  return at->second;
}

}  // namespace bubblescope::tests::fake_cuda
