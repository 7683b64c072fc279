// Finds and sets assumptions by their names.
#include "sim/model/runtime.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>

#include "sim/ir/error.h"
#include "sim/ir/nearest_names.h"
#include "sim/ir/range.h"

namespace bubblescope::inline sim {

namespace {

struct Assumption {
  const char* name;
  std::function<void(ModelOnDevices&, double)> set;
  std::function<double(const ModelOnDevices&)> get;
};

template <class Member>
std::function<double(const ModelOnDevices&)> get_from_runtime(Member member) {
  return [member](const ModelOnDevices& on) { return static_cast<double>(on.assumptions.*member); };
}

std::function<double(const ModelOnDevices&)> get_from_device(double KernelRates::*member) {
  return [member](const ModelOnDevices& on) { return on.gpu.kernels.*member; };
}

Assumption of_runtime(const char* name, double CostAssumptions::*member) {
  return {name, [member](ModelOnDevices& on, double value) { on.assumptions.*member = value; },
          get_from_runtime(member)};
}

Assumption fraction_of_runtime(const char* name, double CostAssumptions::*member) {
  return {name,
          [name, member](ModelOnDevices& on, double value) {
            if (value > 1)
              throw Error("`assume` " + std::string(name) + ": it is a fraction; give 0 to 1");
            on.assumptions.*member = value;
          },
          get_from_runtime(member)};
}

Assumption time_of_runtime(const char* name, Nanos CostAssumptions::*member) {
  return {name,
          [member](ModelOnDevices& on, double value) {
            on.assumptions.*member = round_nanos(value * 1e3, "an assumed time");
          },
          [member](const ModelOnDevices& on) {
            return static_cast<double>(on.assumptions.*member) / 1e3;
          }};
}

Assumption fraction_of_peak(const char* name, double KernelRates::*member) {
  return {name,
          [name, member](ModelOnDevices& on, double value) {
            if (value > 1)
              throw Error("`assume` " + std::string(name) +
                          ": it is a fraction of the device's peak; give 0 to 1");
            on.gpu.kernels.*member = value;
          },
          get_from_device(member)};
}

void set_sustained_rate(ModelOnDevices& on, double teraflops) {
  if (teraflops * 1e12 > on.gpu.peak_flops)
    throw Error(fmt::format(
        "`assume` sustained_teraflops: {:g} is more than the device's peak; give at most {:g}",
        teraflops, on.gpu.peak_flops / 1e12));
  on.gpu.kernels.sustained_flops = teraflops * 1e12;
}

void choose_dispatch(ModelOnDevices& on, double once) {
  on.assumptions.dispatch_once = once;
  on.assumptions.dispatch_chosen = true;
}

void set_moment_bytes(ModelOnDevices& on, double bytes) {
  if (bytes != 1 && bytes != 2 && bytes != 4)
    throw Error(
        fmt::format("`assume` moment_bytes: a moment has 4, 2 or 1 bytes, not {:g}", bytes));
  on.parallel.moment_bytes = std::llround(bytes);
}

Assumption of_device(const char* name, double KernelRates::*member) {
  return {name, [member](ModelOnDevices& on, double value) { on.gpu.kernels.*member = value; },
          get_from_device(member)};
}

const std::vector<Assumption>& all_assumptions() {
  static const std::vector<Assumption> all{
      fraction_of_runtime("memory_efficiency", &CostAssumptions::memory_efficiency),
      fraction_of_runtime("elementwise_efficiency", &CostAssumptions::elementwise_efficiency),
      of_runtime("elementwise_traffic", &CostAssumptions::elementwise_traffic),
      fraction_of_runtime("eager_kernels", &CostAssumptions::eager_kernels),
      of_runtime("forward_kernels", &CostAssumptions::forward_kernels),
      time_of_runtime("launch_us", &CostAssumptions::launch),
      time_of_runtime("host_layer_us", &CostAssumptions::host_layer),
      time_of_runtime("host_tensor_us", &CostAssumptions::host_tensor),
      time_of_runtime("host_pass_us", &CostAssumptions::host_pass),
      time_of_runtime("host_experts_us", &CostAssumptions::host_experts),
      time_of_runtime("host_expert_us", &CostAssumptions::host_expert),
      fraction_of_runtime("launch_blocking", &CostAssumptions::launch_blocking),
      fraction_of_runtime("iteration_graphs", &CostAssumptions::iteration_graphs),
      fraction_of_runtime("gradients_exposed", &CostAssumptions::gradients_exposed),
      of_runtime("attention_quality", &CostAssumptions::attention_quality),
      fraction_of_runtime("flash_attention_2", &CostAssumptions::flash_attention_2),
      fraction_of_runtime("flash_attention_4", &CostAssumptions::flash_attention_4),
      of_runtime("flash_backward", &CostAssumptions::flash_backward),
      fraction_of_runtime("tensor_exposed", &CostAssumptions::tensor_exposed),
      fraction_of_runtime("context_exposed", &CostAssumptions::context_exposed),
      fraction_of_runtime("context_ring", &CostAssumptions::context_ring),
      fraction_of_runtime("expert_exposed", &CostAssumptions::expert_exposed),
      fraction_of_runtime("message_exposed", &CostAssumptions::message_exposed),
      fraction_of_runtime("receives_exposed", &CostAssumptions::receives_exposed),
      of_runtime("accumulation_bytes", &CostAssumptions::accumulation_bytes),
      of_runtime("gradient_bytes", &CostAssumptions::gradient_bytes),
      of_runtime("loss_forward_bytes", &CostAssumptions::loss_forward_bytes),
      of_runtime("loss_backward_bytes", &CostAssumptions::loss_backward_bytes),
      fraction_of_runtime("collective_sms", &CostAssumptions::collective_sms),
      fraction_of_runtime("grouped_efficiency", &CostAssumptions::grouped_efficiency),
      fraction_of_runtime("experts_fused", &CostAssumptions::experts_fused),
      of_runtime("routing_bytes", &CostAssumptions::routing_bytes),
      {"dispatch_once", choose_dispatch, get_from_runtime(&CostAssumptions::dispatch_once)},
      of_runtime("ranks_per_token", &CostAssumptions::ranks_per_token),
      fraction_of_runtime("weighed_early", &CostAssumptions::weighed_early),
      of_runtime("expert_imbalance", &CostAssumptions::expert_imbalance),
      of_runtime("cast_bytes", &CostAssumptions::cast_bytes),
      {"whole_gradients",
       [](ModelOnDevices& on, double value) { on.parallel.whole_gradients = value > 0; },
       [](const ModelOnDevices& on) { return on.parallel.whole_gradients ? 1.0 : 0.0; }},
      {"logit_bytes",
       [](ModelOnDevices& on, double value) { on.parallel.logit_bytes = std::llround(value); },
       [](const ModelOnDevices& on) { return static_cast<double>(on.parallel.logit_bytes); }},
      {"moment_bytes", set_moment_bytes,
       [](const ModelOnDevices& on) { return static_cast<double>(on.parallel.moment_bytes); }},
      {"sustained_teraflops", set_sustained_rate,
       [](const ModelOnDevices& on) { return on.gpu.kernels.sustained_flops / 1e12; }},
      of_device("half_size", &KernelRates::half_size),
      of_device("fp8_gain", &KernelRates::fp8_gain),
      of_device("grouped_traffic", &KernelRates::grouped_traffic),
      of_device("ring_share", &KernelRates::ring_share),
      fraction_of_peak("attention_forward", &KernelRates::attention_forward),
      fraction_of_peak("attention_backward", &KernelRates::attention_backward),
  };
  return all;
}

}  // namespace

std::vector<std::string> list_assumptions() {
  std::vector<std::string> names;
  for (const Assumption& known : all_assumptions()) names.emplace_back(known.name);
  return names;
}

namespace {

const Assumption& find_assumption(std::string_view name) {
  for (const Assumption& known : all_assumptions())
    if (known.name == name) return known;
  const std::vector<std::string> names = list_assumptions();
  throw Error(fmt::format("`assume`: no assumption is called '{}'{}; there are {}", name,
                          suggestion(nearest_names(name, names)), fmt::join(names, ", ")));
}

}  // namespace

void assume(ModelOnDevices& on, std::string_view name, double value) {
  if (!std::isfinite(value) || value < 0)
    throw Error("`assume` " + std::string(name) + ": give a number of 0 or more");
  find_assumption(name).set(on, value);
}

double assumed_value(const ModelOnDevices& on, std::string_view name) {
  return find_assumption(name).get(on);
}

CostAssumptions assumptions_on(const RuntimeDef& runtime, const Gpu& gpu) {
  CostAssumptions assumed = runtime.assumptions;
  const bool prefers_cudnn = gpu.generation == "blackwell" ||
                             (gpu.generation.starts_with("hopper") && runtime.cudnn_on_hopper);
  if (!runtime.torch_attention || !prefers_cudnn) return assumed;
  assumed.flash_attention_2 = 0;
  assumed.attention_quality = 1;  // the runtime's own was measured with flash attention 2
  return assumed;
}

bool names_modules(const std::string& runtime) {
  const RuntimeDef* const known = Registry<RuntimeDef>::instance().find(runtime);
  return known != nullptr && known->names_modules;
}

}  // namespace bubblescope::inline sim
