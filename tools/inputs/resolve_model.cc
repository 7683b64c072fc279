// Combines the choices of flags with what is known of models, devices and runtimes.
#include "tools/inputs/resolve_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "sim/ir/error.h"
#include "sim/ir/nearest_names.h"
#include "sim/ir/registry.h"
#include "sim/ir/units.h"
#include "sim/model/head_alignment.h"
#include "sim/model/model_step.h"
#include "sim/model/runtime.h"
#include "tools/flags/bare_size.h"
#include "tools/flags/choice.h"
#include "tools/flags/field_names.h"
#include "tools/flags/framework_names.h"
#include "tools/print.h"
#include "traces/costs/gpu_file.h"
#include "traces/costs/model_file.h"

namespace bubblescope::tools {

namespace {

template <class Def>
Def find_known(const std::string& name, const char* what, std::string hint = {}) {
  const auto& registry = Registry<Def>::instance();
  if (const Def* def = registry.find(name)) return *def;
  if (hint.empty()) hint = suggestion(nearest_names(name, registry));
  throw Error(fmt::format("no {0} is called '{1}'{2} ('bubblescope list {0}s' shows them all)",
                          what, name, hint));
}

/// Whether a name is that of a file: it is not a preset (whose Hugging Face id looks like a path),
/// and looks like a path or is an existing file.
template <class Def>
bool is_file(const std::string& name) {
  if (Registry<Def>::instance().find(name) != nullptr) return false;
  if (name == "-" || name.find('/') != std::string::npos || name.ends_with(".json")) return true;
  std::error_code unreadable;
  return std::filesystem::is_regular_file(name, unreadable);
}

void set_model(ModelOnDevices& on, const std::string& name) {
  if (is_file<ModelDef>(name)) {
    const traces::ModelFile file = traces::read_model(name);
    for (const std::string& note : file.notes) print_message("bubblescope: {}: {}\n", name, note);
    on.model = file.model;
    on.sources.push_back(name);
    return;
  }
  const ModelDef def = find_known<ModelDef>(name, "model");
  on.model = def.model;
  on.sources.push_back(def.name + ": " + def.source);
}

/// Sets the device and returns its name.
std::string set_gpu(ModelOnDevices& on, const std::string& name) {
  if (is_file<GpuDef>(name)) {
    on.gpu = traces::read_gpu(name);
    on.sources.push_back(name);
    if (!on.gpu.kernels.gemms.empty()) on.replaced.push_back("--gpu " + name + " (its GEMMs)");
    return name;
  }
  const GpuDef def = find_known<GpuDef>(name, "gpu");
  on.gpu = def.gpu;
  for (const std::string& source : def.sources) on.sources.push_back(def.name + ": " + source);
  return def.name;
}

/// "4xh100": so many ranks with that device. A name alone is one rank's.
struct NamedRanks {
  std::size_t ranks = 1;
  std::string device;
};

NamedRanks parse_ranks(const std::string& text) {
  NamedRanks named{1, text};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, named.ranks);
  if (error != std::errc{} || rest == end || *rest != 'x') return {1, text};
  if (named.ranks < 1 || named.ranks > 65'536)
    throw Error("--gpu " + text + ": give 1 to 65536 ranks, such as 4xh100");
  named.device = std::string(rest + 1, end);
  return named;
}

/// Sets the device of each rank where the list has more than one name, and returns the list.
std::string set_gpus(ModelOnDevices& on, const std::string& list) {
  std::vector<NamedRanks> all;
  std::size_t begin = 0;
  while (begin <= list.size()) {
    const std::size_t comma = std::min(list.find(',', begin), list.size());
    all.push_back(parse_ranks(list.substr(begin, comma - begin)));
    begin = comma + 1;
  }
  std::string device = set_gpu(on, all[0].device);
  if (all.size() == 1) return device;
  const Gpu first = on.gpu;
  for (std::size_t at = 0; at < all.size(); ++at) {
    if (at > 0) set_gpu(on, all[at].device);
    on.rank_gpus.insert(on.rank_gpus.end(), all[at].ranks, on.gpu);
  }
  on.gpu = first;
  return list;
}

/// Whether an assumption is a choice of the job, and no constant that errors were measured with.
bool states_how_a_job_runs(const std::string& assumption) {
  return assumption == "launch_blocking" || assumption == "iteration_graphs" ||
         assumption == "dispatch_once" || assumption.starts_with("flash_attention_");
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
    name_errors("--assume", [&] { replace("--assume " + name, name, value); });
    for (Gpu& gpu : on.rank_gpus) {
      std::swap(on.gpu, gpu);
      assume(on, name, value);
      std::swap(on.gpu, gpu);
    }
  }
}

/// Sets the assumptions of the runtime, then those of single flags.
void set_assumptions(ModelOnDevices& on, const ModelOptions& options) {
  const RuntimeDef runtime =
      find_known<RuntimeDef>(options.runtime, "runtime", explain_framework(options.runtime));
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
  throw Error(Fault::kProblem, "--precision fp8: " + on.device +
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
