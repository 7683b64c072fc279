// Tells flags apart by their values.
#include "tools/flags/other_meanings.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "tools/flags/words.h"

namespace bubblescope::tools {

namespace {

/// A flag of ours, and when another program's is meant.
struct OtherMeaning {
  std::string_view name;
  bool (*is_meant)(const MeantFlag&);
  std::string_view text;  ///< follows the flag and its value
};

bool lacks_value(const MeantFlag& meant) { return !meant.value; }

/// Megatron-LM's arguments contain the folder of checkpoints, which has no ending.
bool is_checkpoint_folder(const MeantFlag& meant) {
  if (!meant.value || meant.value->empty()) return false;
  const bool is_json = meant.value->ends_with(".json") || meant.value->ends_with(".gz");
  return meant.value->back() == '/' || (meant.is_megatron && !is_json && *meant.value != "-");
}

bool is_training_optimizer(const MeantFlag& meant) {
  constexpr std::array<std::string_view, 6> kOptimizers{"adam", "adamw", "dist_muon",
                                                        "lion", "muon",  "sgd"};
  return meant.value && std::find(kOptimizers.begin(), kOptimizers.end(), to_lower(*meant.value)) !=
                            kOptimizers.end();
}

/// Accepts a list of numbers such as "969,30,1", by which Megatron-LM divides its data.
bool divides_data(const MeantFlag& meant) {
  return meant.value && !meant.value->empty() &&
         meant.value->find_first_not_of("0123456789.,") == std::string::npos;
}

constexpr std::array<OtherMeaning, 5> kOtherMeanings{{
    {"--offload", lacks_value,
     " needs a value, the share of activations that is offloaded; in DeepSpeed's examples it "
     "offloads the optimizer, which is not modelled here: leave it out"},
    {"--optimizer", is_training_optimizer,
     ": here it says what an update of the weights waits for; in Megatron-LM it is the optimizer "
     "of the training, and models have Adam here: leave it out"},
    {"--profile", lacks_value,
     " needs a value, a framework whose rules hold; in Megatron-LM it records a profile of the "
     "training, which no prediction depends on: leave it out"},
    {"--save", is_checkpoint_folder,
     ": here it writes the step as json, to a file that ends in .json; in Megatron-LM it is the "
     "folder of checkpoints, which no prediction depends on: leave it out"},
    {"--split", divides_data,
     ": here it says how layers are split; in Megatron-LM it divides the data, which no prediction "
     "depends on: leave it out"},
}};

}  // namespace

std::string find_other_meaning(const MeantFlag& meant) {
  for (const OtherMeaning& other : kOtherMeanings)
    if (other.name == meant.name && other.is_meant(meant))
      return meant.name + (meant.value ? " " + *meant.value : "") + std::string(other.text);
  return {};
}

}  // namespace bubblescope::tools
