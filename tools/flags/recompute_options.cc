// Finds policies and modules by their names.
#include "tools/flags/recompute_options.h"

#include <optional>
#include <sstream>
#include <vector>

#include "sim/ir/error.h"
#include "sim/ir/named.h"
#include "sim/ir/nearest_names.h"
#include "sim/ir/recompute.h"
#include "tools/flags/choice.h"
#include "tools/flags/words.h"

namespace bubblescope::tools {

namespace {

std::vector<std::string> module_names() {
  std::vector<std::string> names;
  for (const Named<RecomputeModule>& known : kRecomputeModules) names.emplace_back(known.name);
  return names;
}

RecomputeModules parse_modules(const std::string& text) {
  RecomputeModules modules;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const Named<RecomputeModule>* known = find_named(kRecomputeModules, word);
    if (known == nullptr)
      throw Error("'" + word + "' is not one of " + join(module_names(), "|") +
                  suggestion(nearest_names(word, module_names())));
    modules.add(known->choice);
  }
  if (modules.empty()) throw Error("name at least one module, such as core_attn");
  return modules;
}

}  // namespace

Recompute parse_recompute(const std::string& text) {
  const std::vector<std::string> names{"none", "selective", "full"};
  if (const std::optional<Recompute> known = find_recompute(normalize_name(text))) return *known;
  throw Error("'" + text + "' is not one of none|selective|full" +
              suggestion(nearest_names(text, names)));
}

void add_recompute_method_option(CommandFlags& app, std::optional<RecomputeMethod>& method) {
  add_choice<RecomputeMethod>(
      app,
      {"--recompute-method",
       "layers that --recompute full covers, as in Megatron-LM: all, in groups (uniform), or the "
       "first of every stage or chunk (block); default: all, one by one"},
      choices_of(kRecomputeMethods), [&method](RecomputeMethod chosen) { method = chosen; });
}

void add_recompute_layers_option(CommandFlags& app, std::optional<std::int32_t>& number) {
  app.add_option("--recompute-num-layers", number,
                 "layers of such a group (1 unless given), or of the block")
      ->check(InRange(0, kMaxRecomputedLayers));
}

RecomputedLayers choose_recomputed_layers(std::optional<RecomputeMethod> method,
                                          std::optional<std::int32_t> number) {
  if (number && !method)
    throw Error(
        "--recompute-num-layers needs --recompute-method: uniform (layers of a group) or block "
        "(layers of a stage)");
  if (method == RecomputeMethod::kBlock && !number)
    throw Error(
        "--recompute-method block covers the first layers of a stage; say how many by "
        "--recompute-num-layers");
  if (method == RecomputeMethod::kUniform && number == 0)
    throw Error("--recompute-num-layers 0: a group has 1 layer or more");
  RecomputedLayers layers;
  if (method) layers.method = *method;
  if (number) layers.number = *number;
  return layers;
}

void add_modules_option(CommandFlags& app, RecomputeModules& modules) {
  add_parsed(app,
             {"--recompute-modules",
              "what selective recomputation computes again, by Megatron-Core's names, with commas "
              "or blanks: core_attn, layernorm, mla_up_proj, mlp, moe_act, shared_experts, moe "
              "(default: the runtime's choice)",
              "MODULE[,...]"},
             [&modules](const std::string& text) { modules = parse_modules(text); })
      ->joins(module_names());
}

}  // namespace bubblescope::tools
