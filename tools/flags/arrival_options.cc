// Adds the flags of arrivals and policies.
#include "tools/flags/heading.h"
#include "tools/flags/options.h"
#include "tools/flags/words.h"

namespace bubblescope::tools {

namespace {

constexpr const char* kPolicies = "fixed, ready, ready:order, ready:backward or ready:path";

std::optional<ReadyPriority> parse_policy(const std::string& text) {
  const std::string name = normalize_name(text);
  if (name == "fixed") return {};
  if (name == "ready" || name == "ready:order") return ReadyPriority::kOrder;
  if (name == "ready:backward") return ReadyPriority::kBackward;
  if (name == "ready:path") return ReadyPriority::kPath;
  throw Error("--policy: '" + text + "' is unknown; write " + kPolicies);
}

}  // namespace

void add_arrival_options(CommandFlags& app, PredictOptions& options) {
  app.add_option("--arrivals", options.arrivals_file,
                 "a file with the time at which every micro-batch arrives, from the step's start");
  app.add_parsed(
      "--policy", [&options](const std::string& text) { options.policy = parse_policy(text); },
      std::string("whether ranks keep their order or run what is ready: ") + kPolicies);
}

void expect_runnable(const PredictOptions& options) {
  if (!options.arrivals_file.empty() || options.policy)
    throw Error("--arrivals and --policy are simulated, not run; leave them or --backend out");
  if (options.cost.lower.send_budget || options.shape.lookahead)
    throw Error(
        "--send-budget and --unshard-lookahead are simulated, not run; leave them or --backend "
        "out");
}

}  // namespace bubblescope::tools
