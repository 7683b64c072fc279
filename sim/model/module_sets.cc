// Weighs every module alone, on all layers, and adds up: modules of a layer do not overlap.
#include "sim/model/module_sets.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "sim/ir/units.h"
#include "sim/model/activation_bytes.h"
#include "sim/model/parallelism.h"
#include "sim/model/transformer.h"

namespace bubblescope::inline sim {

namespace {

/// A set of modules, with its cost over all layers of a model.
struct WeighedModules {
  RecomputeModules modules;
  double nanos = 0;  ///< that recomputing them takes
  Bytes freed = 0;   ///< that need not be saved
};

/// Identical layers, and their cost without recomputation.
struct LayersAlike {
  std::int64_t layer = 0;  ///< one of them
  std::int64_t count = 0;
  double input_grad = 0;
  Bytes saved = 0;
};

/// The layers without experts come first.
std::vector<LayersAlike> find_layers_alike(const ModelOnDevices& keeping) {
  std::int64_t dense = 0;
  for (std::int64_t layer = 0; layer < keeping.model.layers; ++layer)
    dense += has_experts(keeping.model, layer) ? 0 : 1;
  std::vector<LayersAlike> found;
  for (std::int64_t layer = 0; layer < keeping.model.layers; ++layer) {
    const bool experts = has_experts(keeping.model, layer);
    const bool known = std::any_of(found.begin(), found.end(), [&](const LayersAlike& other) {
      return has_experts(keeping.model, other.layer) == experts;
    });
    if (known) continue;
    found.push_back({layer, experts ? keeping.model.layers - dense : dense,
                     estimate_layer_times(keeping, layer).input_grad,
                     estimate_layer_memory(keeping.model, keeping.parallel, layer).forward});
  }
  return found;
}

WeighedModules weigh(ModelOnDevices on, const std::vector<LayersAlike>& all,
                     RecomputeModule module) {
  on.parallel.recompute = Recompute::kSelective;
  on.parallel.modules = {};
  on.parallel.modules.add(module);
  WeighedModules weighed{on.parallel.modules};
  for (const LayersAlike& alike : all) {
    const auto count = static_cast<double>(alike.count);
    weighed.nanos += count * (estimate_layer_times(on, alike.layer).input_grad - alike.input_grad);
    weighed.freed +=
        alike.count *
        (alike.saved - estimate_layer_memory(on.model, on.parallel, alike.layer).forward);
  }
  return weighed;
}

/// Whether a set names a part of the experts beside all of them.
bool repeats_experts(RecomputeModules modules) {
  return modules.has(RecomputeModule::kExperts) &&
         (modules.has(RecomputeModule::kExpertActivation) ||
          modules.has(RecomputeModule::kSharedExperts));
}

std::vector<WeighedModules> combine_modules(const std::vector<WeighedModules>& single) {
  std::vector<WeighedModules> sets{{}};
  for (const WeighedModules& one : single) {
    for (std::size_t at = sets.size(); at-- > 0;) {
      WeighedModules next = sets[at];
      for (const Named<RecomputeModule>& known : kRecomputeModules)
        if (one.modules.has(known.choice)) next.modules.add(known.choice);
      next.nanos += one.nanos;
      next.freed += one.freed;
      if (!repeats_experts(next.modules)) sets.push_back(next);
    }
  }
  return sets;
}

}  // namespace

std::vector<RecomputeModules> list_module_sets(const ModelOnDevices& on) {
  ModelOnDevices keeping = on;
  keeping.parallel.recompute = Recompute::kNone;
  keeping.parallel.modules = {};
  const std::vector<LayersAlike> layers = find_layers_alike(keeping);
  std::vector<WeighedModules> single;
  for (const Named<RecomputeModule>& known : kRecomputeModules) {
    const WeighedModules weighed = weigh(keeping, layers, known.choice);
    if (weighed.freed > 0) single.push_back(weighed);
  }
  std::vector<WeighedModules> sets = combine_modules(single);
  std::stable_sort(sets.begin(), sets.end(),
                   [](const auto& left, const auto& right) { return left.nanos < right.nanos; });
  std::vector<RecomputeModules> front;
  Bytes most = 0;
  for (const WeighedModules& set : sets) {
    if (set.freed <= most) continue;
    most = set.freed;
    front.push_back(set.modules);
  }
  return front;
}

}  // namespace bubblescope::inline sim
