// Names and values both ways.
#include "traces/made_with.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "sim/ir/error.h"
#include "traces/cell.h"
#include "traces/json_string.h"

namespace bubblescope {

namespace {

template <class Choice>
struct Named {
  std::string_view name;
  Choice choice;
};

constexpr std::array<Named<Overlap>, 3> kOverlaps{{
    {"serial", Overlap::kSerial},
    {"atomic", Overlap::kAtomic},
    {"fused", Overlap::kFused},
}};
constexpr std::array<Named<Lowering>, 2> kLowerings{{
    {"asap", Lowering::kAsap},
    {"deferred", Lowering::kDeferred},
}};

constexpr std::array<Named<OptimizerMode>, 4> kOptimizers{{
    {"none", OptimizerMode::kNone},
    {"local", OptimizerMode::kLocal},
    {"barrier", OptimizerMode::kBarrier},
    {"post-validation", OptimizerMode::kPostValidation},
}};
constexpr std::array<Named<GradReduction>, 3> kReductions{{
    {"none", GradReduction::kNone},
    {"overlap", GradReduction::kOverlap},
    {"serial", GradReduction::kSerial},
}};

template <class Names, class Choice>
std::string name_of(const Names& names, Choice choice) {
  const auto found = std::find_if(names.begin(), names.end(),
                                  [&](const auto& named) { return named.choice == choice; });
  return std::string(found->name);
}

[[noreturn]] void refuse(const std::string& file, const char* key, const std::string& value) {
  throw Error(fmt::format("{}: /otherData/{}: {} is unknown to this program; update it", file, key,
                          quote(value)));
}

template <class Names, class Choice>
void read_choice(const std::map<std::string, std::string>& described, const char* key,
                 const Names& names, Choice& choice, const std::string& file) {
  const auto given = described.find(key);
  if (given == described.end()) return;
  const auto found = std::find_if(names.begin(), names.end(),
                                  [&](const auto& named) { return named.name == given->second; });
  if (found == names.end()) refuse(file, key, given->second);
  choice = found->choice;
}

/// "fifo", or "eager:2" with its slots.
void read_mode(const std::string& text, LowerOptions& options, const std::string& file) {
  const std::string name = text.substr(0, text.find(':'));
  const auto found = std::find_if(kP2pModes.begin(), kP2pModes.end(),
                                  [&](const P2pModeName& mode) { return mode.name == name; });
  if (found == kP2pModes.end()) refuse(file, "p2p_mode", text);
  options.mode = found->mode;
  if (name.size() == text.size()) return;
  const char* const end = text.data() + text.size();
  const auto [last, fault] =
      std::from_chars(text.data() + name.size() + 1, end, options.eager_slots);
  if (fault != std::errc{} || last != end || options.eager_slots < 0)
    refuse(file, "p2p_mode", text);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> describe(const MadeWith& made) {
  std::vector<std::pair<std::string, std::string>> described;
  if (!made.costs.empty()) described.emplace_back("costs", made.costs);
  described.emplace_back("p2p_mode", to_string(made.lower.mode, made.lower.eager_slots));
  described.emplace_back("lowering", name_of(kLowerings, made.lower.posting));
  described.emplace_back("overlap", name_of(kOverlaps, made.lower.overlap));
  const UpdateOptions& update = made.lower.update;
  if (update.optimizer != OptimizerMode::kNone)
    described.emplace_back("optimizer", name_of(kOptimizers, update.optimizer));
  if (update.reduction != GradReduction::kNone)
    described.emplace_back("grad_reduction", name_of(kReductions, update.reduction));
  if (made.lower.ranks_per_host_link > 1)
    described.emplace_back("ranks_per_host_link", std::to_string(made.lower.ranks_per_host_link));
  if (!made.profile.empty()) described.emplace_back("profile", made.profile);
  return described;
}

std::string write_made_with_json(const MadeWith& made) {
  std::string out;
  for (const auto& [key, value] : describe(made))
    out += fmt::format("{}\"{}\":{}", out.empty() ? "" : ",", key, json_string(value));
  return "\"made_with\":{" + out + "}";
}

LowerOptions read_lowering(const std::map<std::string, std::string>& described,
                           const std::string& file) {
  LowerOptions options;
  if (const auto mode = described.find("p2p_mode"); mode != described.end())
    read_mode(mode->second, options, file);
  read_choice(described, "lowering", kLowerings, options.posting, file);
  read_choice(described, "overlap", kOverlaps, options.overlap, file);
  read_choice(described, "optimizer", kOptimizers, options.update.optimizer, file);
  read_choice(described, "grad_reduction", kReductions, options.update.reduction, file);
  if (const auto ranks = described.find("ranks_per_host_link"); ranks != described.end()) {
    const std::string& text = ranks->second;
    const char* const end = text.data() + text.size();
    const auto [last, fault] = std::from_chars(text.data(), end, options.ranks_per_host_link);
    if (fault != std::errc{} || last != end || options.ranks_per_host_link < 1)
      refuse(file, "ranks_per_host_link", text);
  }
  return options;
}

}  // namespace bubblescope
