// Adds the flags of arrivals and policies.
#include "tools/flags/arrival_options.h"

#include <array>
#include <optional>
#include <string>

#include "sim/ir/error.h"
#include "sim/ir/named.h"

namespace bubblescope::tools {

namespace {

constexpr std::array<Named<ReadyPriority>, 3> kPriorities{{
    {ReadyPriority::kOrder, "ready:order"},
    {ReadyPriority::kBackward, "ready:backward"},
    {ReadyPriority::kPath, "ready:path"},
}};
constexpr const char* kPolicies = "fixed, ready, ready:order, ready:backward or ready:path";

std::optional<ReadyPriority> parse_policy(const std::string& text) {
  const std::string name = normalize_name(text);
  if (name == "fixed") return {};
  if (name == "ready") return ReadyPriority::kOrder;
  if (const Named<ReadyPriority>* const found = find_named(kPriorities, name)) return found->choice;
  throw Error("--policy: '" + text + "' is unknown; write " + kPolicies);
}

}  // namespace

std::string policy_text(ReadyPriority policy) { return name_of(kPriorities, policy); }

void add_policy_option(CommandFlags& app, PredictOptions& options) {
  app.add_parsed(
         "--policy", [&options](const std::string& text) { options.policy = parse_policy(text); },
         "whether ranks keep their order (fixed) or run what is ready: of several ready ops, "
         "ready:order prefers the next one of the order, ready:backward a backward, ready:path one "
         "on the longest path")
      ->type_name("fixed|ready[:order|backward|path]");
}

void add_arrival_options(CommandFlags& app, PredictOptions& options) {
  app.add_option("--arrivals", options.arrivals_file,
                 "a file with the time at which every micro-batch arrives, from the step's start")
      ->type_name("FILE");
  add_policy_option(app, options);
}

void expect_runnable(const PredictOptions& options) {
  if (!options.arrivals_file.empty())
    throw Error("--arrivals is simulated, not run; leave it or --backend out");
  if (options.cost.lower.send_budget || options.shape.lookahead)
    throw Error(
        "--send-budget and --unshard-lookahead are simulated, not run; leave them or --backend "
        "out");
}

}  // namespace bubblescope::tools
