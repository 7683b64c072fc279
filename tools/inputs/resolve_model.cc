// Combines the choices of flags with what is known of models, devices and runtimes.
#include "tools/inputs/resolve_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "sim/ir/error.h"
#include "sim/ir/units.h"
#include "sim/model/head_alignment.h"
#include "sim/model/model_step.h"
#include "sim/model/runtime.h"
#include "tools/flags/bare_size.h"
#include "tools/flags/choice.h"
#include "tools/flags/field_names.h"
#include "tools/inputs/named_devices.h"
#include "tools/print.h"

namespace bubblescope::tools {

namespace {

/// Whether an assumption is a choice of the job, and no constant that errors were measured with.
bool states_how_a_job_runs(const std::string& assumption) {
  return assumption == "launch_blocking" || assumption == "iteration_graphs" ||
         assumption == "dispatch_once" || assumption == "ranks_per_token" ||
         assumption.starts_with("flash_attention_");
}

/// Replaces assumptions by those of flags, and lists the ones that differ from the runtime's or
/// the device's.
void replace_assumptions(ModelOnDevices& on, const ModelOptions& options) {
  const auto replace = [&on](const std::string& flag, const std::string& name, double value) {
    const CostAssumptions assumed = on.assumptions;
    const KernelRates rates = on.gpu.kernels;
    const double usual = assumed_value(on, name);
    assume(on, name, value);
    if (!states_how_a_job_runs(name) && !(on.assumptions == assumed && on.gpu.kernels == rates))
      on.replaced_assumptions.push_back({flag, name, usual});
  };
  const auto replace_if_given = [&](const char* flag, const char* name,
                                    std::optional<double> value) {
    if (value) replace(flag, name, *value);
  };
  replace_if_given("--tensor-exposed", "tensor_exposed", options.tensor_exposed);
  replace_if_given("--message-exposed", "message_exposed", options.message_exposed);
  replace_if_given("--accumulation-bytes", "accumulation_bytes", options.accumulation_bytes);
  for (const std::string& text : options.assumed) {
    const std::size_t equals = text.find('=');
    double value = 0;
    const char* end = text.data() + text.size();
    if (equals == std::string::npos ||
        std::from_chars(text.data() + equals + 1, end, value).ptr != end)
      throw Error("--assume " + text + ": write NAME=NUMBER, such as tensor_exposed=0.5");
    const std::string name = text.substr(0, equals);
    replace("--assume " + name, name, value);
    for (Gpu& gpu : on.rank_gpus) {
      std::swap(on.gpu, gpu);
      assume(on, name, value);
      std::swap(on.gpu, gpu);
    }
  }
}

/// Sets the assumptions of the runtime, then those of single flags.
void set_assumptions(ModelOnDevices& on, const ModelOptions& options) {
  const RuntimeDef runtime = find_runtime(options.runtime);
  on.runtime = runtime.name;
  on.assumptions = assumptions_on(runtime, on.gpu);
  on.parallel.zero_stage = options.zero_stage.value_or(runtime.zero_stage);
  on.parallel.pytorch = runtime.pytorch;
  on.parallel.logit_bytes = runtime.logit_bytes;
  on.assumptions.causal = !options.full_attention;
  on.assumptions.slowdown = options.slowdown;
  on.sources.push_back("runtime " + runtime.name + ": " + runtime.source);
  replace_assumptions(on, options);
}

/// Refuses 8-bit GEMMs on devices that have none.
void set_matrices(ModelOnDevices& on, MatrixType matrices) {
  on.matrices = matrices;
  on.parallel.fp8_inputs = matrices == MatrixType::kFp8;
  std::vector<Gpu> gpus = on.rank_gpus;
  gpus.push_back(on.gpu);
  if (matrices != MatrixType::kFp8 || std::all_of(gpus.begin(), gpus.end(), [](const Gpu& gpu) {
        return gpu.kernels.fp8_gain > 0;
      }))
    return;
  throw Error("--precision fp8: " + on.device +
              " has no 8-bit GEMMs; leave it out, or give a device that "
              "does, such as --gpu h100");
}

/// Parses "4GiB", or "5%" of `memory`.
Bytes parse_part(const std::string& text, Bytes memory) {
  const bool is_share = text.ends_with('%');
  Bytes part = 0;
  if (is_share) {
    const Millionths percent = parse_millionths(text.substr(0, text.size() - 1));
    part = static_cast<Bytes>(static_cast<double>(memory) * static_cast<double>(percent) / 1e8);
  } else {
    part = parse_bytes(text);
    warn_of_bare_size("--reserve-memory", text, "bytes", "GiB");
  }
  if (part < 0) throw Error(text + " is below zero; give 0 or more");
  if (part < memory) return part;
  throw Error(fmt::format("{} leaves nothing of the device's {:.1f} GiB; give less", text,
                          static_cast<double>(memory) / (1 << 30)));
}

}  // namespace

ModelOnDevices resolve_model(const ModelOptions& options, std::vector<std::int64_t> lengths) {
  ModelOnDevices on;
  set_model(on, options.model);
  on.device = set_gpus(on, options.gpu);
  on.name = options.model + " on " + on.device;
  if (options.per_node) {
    on.gpu.per_node = *options.per_node;
    for (Gpu& gpu : on.rank_gpus) gpu.per_node = *options.per_node;
  }
  name_errors("--reserve-memory",
              [&] { on.reserved_memory = parse_part(options.reserve_memory, on.gpu.memory); });
  on.parallel = options.parallel;
  on.parallel.gradients = options.gradients.value_or(Gradients::kFp32);
  on.parallel.sequence = options.sequence.value_or(on.model.sequence);
  if (!lengths.empty()) on.parallel.sequence = *std::max_element(lengths.begin(), lengths.end());
  on.sequence_lengths = std::move(lengths);
  on.parts = options.parts;
  set_assumptions(on, options);
  on.parallel.flash_attention =
      !options.save_scores && can_fuse_attention(on.model, on.parallel.pytorch);
  set_matrices(on, options.matrices);
  return on;
}

void note_heads(const ModelOnDevices& on) {
  const std::string text = describe_heads(on);
  if (!text.empty()) print_message("bubblescope: {}\n", text);
}

void print_assumptions(const ModelOnDevices& on) {
  for (const std::string& line : explain(on)) print_message("{}\n", name_flags(line));
}

}  // namespace bubblescope::tools
