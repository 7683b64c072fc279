// Tells names of presets, ids of models and paths of files apart.
#include "tools/inputs/named_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <system_error>
#include <type_traits>
#include <vector>

#include "sim/ir/error.h"
#include "sim/ir/nearest_names.h"
#include "sim/ir/registry.h"
#include "sim/model/find_gpu.h"
#include "tools/flags/framework_names.h"
#include "tools/print.h"
#include "traces/costs/gpu_file.h"
#include "traces/costs/model_file.h"

namespace bubblescope::tools {

namespace {

/// Null where no preset is called so.
template <class Def>
const Def* find_preset(const std::string& name) {
  if constexpr (std::is_same_v<Def, GpuDef>)
    return find_gpu(name);
  else
    return Registry<Def>::instance().find(name);
}

/// The presets that an unknown name may mean, at the end of an error message.
template <class Def>
std::string suggest_presets(const std::string& name) {
  if constexpr (std::is_same_v<Def, GpuDef>)
    return suggest_gpu(name);
  else
    return suggestion(nearest_names(name, Registry<Def>::instance()));
}

/// Finds a preset; errors end with `others`, how to give what is none.
template <class Def>
Def find_known(const std::string& name, const char* what, const char* others,
               std::string hint = {}) {
  if (const Def* def = find_preset<Def>(name)) return *def;
  if (hint.empty()) hint = suggest_presets<Def>(name);
  throw Error(fmt::format("no {0} is called '{1}'{2} ('bubblescope list {0}s' shows them all{3})",
                          what, name, hint, others));
}

/// Whether a name is that of a file: it is not a preset (whose Hugging Face id looks like a path),
/// and looks like a path or is an existing file.
template <class Def>
bool is_file(const std::string& name) {
  if (find_preset<Def>(name) != nullptr) return false;
  if (name == "-" || name.find('/') != std::string::npos || name.ends_with(".json")) return true;
  std::error_code unreadable;
  return std::filesystem::is_regular_file(name, unreadable);
}

/// Whether a name that is no file may be the id of a model, as Hugging Face writes it.
bool is_missing_id(const std::string& name) {
  std::error_code unreadable;
  return std::count(name.begin(), name.end(), '/') == 1 && !name.starts_with('.') &&
         !name.starts_with('/') && !name.starts_with('~') && !name.ends_with(".json") &&
         !std::filesystem::exists(name, unreadable);
}

/// The presets whose names are nearest to that of an id without its organization.
std::string suggest_for_id(const std::string& id) {
  const std::string nearest = suggest_presets<ModelDef>(id.substr(id.find('/') + 1));
  return nearest.empty() ? "; give its config.json or the name of a preset" : nearest;
}

/// Sets the device and returns its name.
std::string set_gpu(ModelOnDevices& on, const std::string& name) {
  if (is_file<GpuDef>(name)) {
    on.gpu = traces::read_gpu(name);
    on.sources.push_back(name);
    if (!on.gpu.kernels.gemms.empty()) on.replaced.push_back("--gpu " + name + " (its GEMMs)");
    return name;
  }
  const GpuDef def = find_known<GpuDef>(
      name, "gpu", "; any other is a .json file with 'like', one of these, and its own rates");
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

}  // namespace

void set_model(ModelOnDevices& on, const std::string& name) {
  if (is_file<ModelDef>(name)) {
    if (is_missing_id(name))
      throw Error("no model and no file is called '" + name + "'" + suggest_for_id(name) +
                  " ('bubblescope list models' shows them all)");
    const traces::ModelFile file = traces::read_model(name);
    for (const std::string& note : file.notes) print_message("bubblescope: {}: {}\n", name, note);
    on.model = file.model;
    on.sources.push_back(name);
    return;
  }
  const ModelDef def = find_known<ModelDef>(name, "model", "; any other is a config.json");
  on.model = def.model;
  on.sources.push_back(def.name + ": " + def.source);
}

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

RuntimeDef find_runtime(const std::string& name) {
  return find_known<RuntimeDef>(name, "runtime", "", explain_framework(name));
}

}  // namespace bubblescope::tools
